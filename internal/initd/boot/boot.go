// Package boot is cosplay-init as a program: pid 1, which starts one child and reaps
// orphans; that child, which creates the user and serves ssh; and tasks that run as the user.
package boot

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"cosplay/internal/initd"
	"cosplay/internal/initd/account"
	"cosplay/internal/initd/environ"
	"cosplay/internal/initd/launch"
	"cosplay/internal/initd/scp"
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
  cosplay-init [--config FILE] exec [--size=RxC] [--env=NAME] [--user=U] [--workdir=DIR] [--] [CMD..]
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
	case "tell":
		tell("/dev/pts", strings.Join(flags.Args()[1:], " "))
		return 0
	case "sftp":
		return done(sshd.ServeFiles())
	case "scp":
		return scp.Serve(flags.Args()[1:], os.Stdin, os.Stdout, os.Stderr)
	case sshd.SocketTask:
		return done(sshd.ServeSocket(flags.Arg(1), flags.Arg(2)))
	default:
		fmt.Fprint(os.Stderr, usage)
		return fail(codeFailed, fmt.Errorf("%q is not one of its tasks; %s has the command of a session", task, *config))
	}
}

// tell writes a message to each terminal of the container that accepts it now.
func tell(folder, message string) {
	terminals, _ := filepath.Glob(filepath.Join(folder, "[0-9]*"))
	for _, name := range terminals {
		if tty, err := os.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0); err == nil {
			_, _ = tty.WriteString("\r\n" + message + "\r\n")
			_ = tty.Close()
		}
	}
}

// execute is for docker exec: it becomes the command.
func execute(config string, args []string) int {
	var how initd.How
	var size string
	flags := flag.NewFlagSet("cosplay-init exec", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flags.StringVar(&size, "size", "", "")
	flags.StringVar(&how.User, "user", "", "")
	flags.StringVar(&how.Dir, "workdir", "", "")
	flags.Func("env", "", func(name string) error {
		how.Env = append(how.Env, name)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return codeFailed
	}
	setSize(size)
	c, err := initd.Load(config)
	if err != nil {
		return fail(codeFailed, err)
	}
	who, err := account.Look("/", c.User)
	if err == nil && how.User != "" {
		who, err = account.Find("/", how.User)
	}
	if err != nil {
		return fail(codeFailed, err)
	}
	l := launcher(c, who)
	if how.Dir != "" {
		l.Workspace = within(c.Workspace, how.Dir)
		if info, err := os.Stat(l.Workspace); err != nil || !info.IsDir() {
			return fail(codeNoExec, fmt.Errorf("--workdir: the session has no folder %s; create it (mkdir -p) or name another", l.Workspace))
		}
	}
	for _, name := range how.Env {
		l.Session[name] = overriding(l.Session[name], l.Image[name])
	}
	err = l.Become(flags.Args())
	return fail(startCode(err), err)
}

// within is a path below a folder, or the path itself if it is absolute.
func within(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// overriding is a value of the user's for a variable. Where the variable is a list that begins with cosplay's folders,
// these stay in front.
func overriding(session, user string) string {
	var own []string
	for _, folder := range filepath.SplitList(session) {
		if strings.HasPrefix(folder, initd.Dir+"/") && !slices.Contains(filepath.SplitList(user), folder) {
			own = append(own, folder)
		}
	}
	if len(own) == 0 || user == "" {
		return cmp.Or(strings.Join(own, ":"), user)
	}
	return strings.Join(append(own, user), ":")
}

// setSize sets the size of the terminal on standard input. A program that gets no size runs, too.
func setSize(rowsByColumns string) {
	var size unix.Winsize
	if _, err := fmt.Sscanf(rowsByColumns, "%dx%d", &size.Row, &size.Col); err == nil {
		_ = unix.IoctlSetWinsize(0, unix.TIOCSWINSZ, &size)
	}
}

func launcher(c initd.Config, who account.Account) *launch.Launcher {
	return &launch.Launcher{
		Account: who, Image: environ.Parse(os.Environ()), Session: environ.Merge(c.Env, c.Secrets), Workspace: c.Workspace, Program: initd.Program,
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

func done(err error) int {
	if err != nil {
		return fail(codeFailed, err)
	}
	return 0
}

func fail(code int, err error) int {
	say("%v", err)
	return code
}
