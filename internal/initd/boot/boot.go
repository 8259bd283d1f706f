// Package boot is cosplay-init as a program: pid 1, which starts one child and reaps
// orphans; that child, which creates the user and serves ssh; and tasks that run as the user.
package boot

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"cosplay/internal/initd"
	"cosplay/internal/initd/account"
	"cosplay/internal/initd/environ"
	"cosplay/internal/initd/launch"
	"cosplay/internal/initd/sshd"
)

// Exit codes, as shells use them.
const (
	codeFailed   = 1
	codeNoExec   = 126
	codeNotFound = 127
)

const usage = `cosplay-init is pid 1 in the container of a cosplay session.

  cosplay-init [--config FILE]                    start the session; FILE is ` + initd.ConfigPath + `
  cosplay-init [--config FILE] exec [--size=RxC] [--] [CMD..]
                                                run CMD, or a login shell, as the session's user
`

// Main runs one of the tasks and returns the exit code.
func Main(args []string) int {
	flags := flag.NewFlagSet("cosplay-init", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	config := flags.String("config", initd.ConfigPath, "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return codeFailed
	}
	switch task := flags.Arg(0); task {
	case "":
		return first(*config)
	case "serve":
		return serve(*config)
	case "exec":
		return execute(*config, flags.Args()[1:])
	case "sftp":
		if err := sshd.ServeFiles(); err != nil {
			return fail(codeFailed, err)
		}
		return 0
	default:
		fmt.Fprint(os.Stderr, usage)
		return fail(codeFailed, fmt.Errorf("%q is not one of its tasks; %s has the command of a session", task, *config))
	}
}

// execute is for docker exec: it becomes the command.
func execute(config string, argv []string) int {
	if len(argv) > 0 && strings.HasPrefix(argv[0], "--size=") {
		setSize(argv[0])
		argv = argv[1:]
	}
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	c, err := initd.Load(config)
	if err != nil {
		return fail(codeFailed, err)
	}
	who, err := account.Look("/", c.User)
	if err != nil {
		return fail(codeFailed, err)
	}
	err = launcher(c, who).Become(argv)
	return fail(startCode(err), err)
}

// setSize sets the size of the terminal on standard input. A program that gets no size runs, too.
func setSize(flag string) {
	var size unix.Winsize
	if _, err := fmt.Sscanf(flag, "--size=%dx%d", &size.Row, &size.Col); err == nil {
		_ = unix.IoctlSetWinsize(0, unix.TIOCSWINSZ, &size)
	}
}

func launcher(c initd.Config, who account.Account) *launch.Launcher {
	return &launch.Launcher{
		Account: who, Image: environ.Parse(os.Environ()), Session: environ.Merge(c.Env, c.Secrets), Workspace: c.Workspace,
	}
}

// startCode is the exit code for a program that is missing or cannot run.
func startCode(err error) int {
	if errors.Is(err, fs.ErrNotExist) {
		return codeNotFound
	}
	return codeNoExec
}

// say writes a line for docker logs. Callers must not pass values of variables.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "cosplay-init: "+format+"\n", args...)
}

func fail(code int, err error) int {
	say("%v", err)
	return code
}
