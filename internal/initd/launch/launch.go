// Package launch starts programs as the session's user: the container's command and the programs of ssh and exec.
package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/anmitsu/go-shlex"
	"golang.org/x/sys/unix"

	"cosplay/internal/initd/account"
	"cosplay/internal/initd/environ"
)

// Launcher states as which user, in which folder and with which environment programs run.
type Launcher struct {
	Account   account.Account
	Image     environ.Vars // the container's environment
	Session   environ.Vars // overrides it
	Workspace string       // the working folder, if it exists
	Program   string       // the path of this program, which the user's shell can run
}

// Environ is the environment of a program. client and connection are those of an ssh login, nil for none.
func (l *Launcher) Environ(client, connection environ.Vars) environ.Vars {
	return environ.Build(l.Image, client, l.Account, l.Session, connection)
}

// Dir returns the working folder: the workspace, the home or the root, the first that exists.
func (l *Launcher) Dir() string {
	for _, dir := range []string{l.Workspace, l.Account.Home} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return "/"
}

// Command prepares a program in a new session (setsid). The error reports that the image does not have it.
func (l *Launcher) Command(env environ.Vars, argv ...string) (*exec.Cmd, error) {
	file, err := Find(argv[0], l.Dir(), env["PATH"])
	if err != nil {
		return nil, err
	}
	return l.program(env, file, argv), nil
}

// Self prepares this program with another task, as the user, for work on the user's files.
func (l *Launcher) Self(env environ.Vars, task ...string) *exec.Cmd {
	return l.program(env, "/proc/self/exe", append([]string{"cosplay-init"}, task...))
}

// Line prepares a line that a user types, for the shell. If the image has no shell, the
// line is a program and its arguments, quoted as in a shell.
func (l *Launcher) Line(env environ.Vars, line string) (*exec.Cmd, error) {
	if rest, is := servesSCP(line); is {
		if _, err := Find("scp", l.Dir(), env["PATH"]); err != nil { // the image has none
			line = l.Program + " scp " + rest
		}
	}
	if l.Account.Shell != "" {
		return l.program(env, l.Account.Shell, []string{filepath.Base(l.Account.Shell), "-c", line}), nil
	}
	argv, err := shlex.Split(line, true)
	if err != nil || len(argv) == 0 {
		return nil, fmt.Errorf("this image has no shell, and %q is no program with arguments", line)
	}
	return l.Command(env, argv...)
}

// servesSCP reports whether a line is what scp runs on the other machine, and returns its arguments.
func servesSCP(line string) (arguments string, is bool) {
	arguments, is = strings.CutPrefix(line, "scp ")
	for _, word := range strings.Fields(arguments) {
		if !strings.HasPrefix(word, "-") {
			break
		}
		if strings.ContainsAny(word, "tf") {
			return arguments, is
		}
	}
	return "", false
}

// ErrNoShell is the error for a shell in an image without one.
var ErrNoShell = errors.New("this image has no shell; give the path of a program of the image, as in: ssh SESSION /path/to/program")

// Login prepares a login shell.
func (l *Launcher) Login(env environ.Vars) (*exec.Cmd, error) {
	if l.Account.Shell == "" {
		return nil, ErrNoShell
	}
	return l.program(env, l.Account.Shell, []string{"-" + filepath.Base(l.Account.Shell)}), nil
}

func (l *Launcher) program(env environ.Vars, file string, argv []string) *exec.Cmd {
	return &exec.Cmd{
		Path:        file,
		Args:        argv,
		Env:         env.List(),
		Dir:         l.Dir(),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Credential: l.credential()},
	}
}

// credential is nil if the process already runs as the user and cannot change that.
func (l *Launcher) credential() *syscall.Credential {
	if os.Geteuid() != 0 && os.Geteuid() == int(l.Account.UID) {
		return nil
	}
	return &syscall.Credential{Uid: l.Account.UID, Gid: l.Account.GID, Groups: l.Account.Groups}
}

// Become executes a program as the user, in this process. It returns only with an error.
func (l *Launcher) Become(argv []string) error {
	env := l.Environ(nil, nil)
	file, dir := l.Account.Shell, l.Dir()
	if len(argv) > 0 {
		var err error
		if file, err = Find(argv[0], dir, env["PATH"]); err != nil {
			return err
		}
	} else {
		shell, err := l.Login(env)
		if err != nil {
			return err
		}
		argv = shell.Args
	}
	l.OwnStreams()
	if l.credential() != nil {
		groups := make([]int, len(l.Account.Groups))
		for i, g := range l.Account.Groups {
			groups[i] = int(g)
		}
		for _, err := range []error{
			syscall.Setgroups(groups), syscall.Setgid(int(l.Account.GID)), syscall.Setuid(int(l.Account.UID)),
		} {
			if err != nil {
				return fmt.Errorf("cannot become %s: %w; run cosplay-init as root (docker exec --user 0)", l.Account.Name, err)
			}
		}
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", file, syscall.Exec(file, argv, env.List()))
}

// OwnStreams makes the user the owner of the pipes and terminals that this process has inherited. Otherwise the user
// could not open /dev/stdout or the terminal.
func (l *Launcher) OwnStreams() {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		info, err := f.Stat()
		if err != nil {
			continue
		}
		_, err = unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		if err == nil || info.Mode()&os.ModeNamedPipe != 0 {
			_ = f.Chown(int(l.Account.UID), -1) // a convenience: programs run without it
		}
	}
}

// Find looks a program up as a shell does: a name with a slash is a path from dir, any other is searched in PATH.
func Find(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if err := runnable(name); err != nil {
			return "", fmt.Errorf("%s: %w; give a program that the image has", name, err)
		}
		return name, nil
	}
	folders := filepath.SplitList(path)
	i := slices.IndexFunc(folders, func(folder string) bool {
		return filepath.IsAbs(folder) && runnable(filepath.Join(folder, name)) == nil
	})
	if i < 0 {
		return "", fmt.Errorf("%s is in no folder of PATH: %w; give a program that the image has", name, os.ErrNotExist)
	}
	return filepath.Join(folders[i], name), nil
}

func runnable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return os.ErrNotExist
	case info.IsDir() || info.Mode()&0o111 == 0:
		return os.ErrPermission
	}
	return nil
}
