package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"cosplay/internal/disguise"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// EnterCommand is the hidden command of cosplay that calls Enter.
const EnterCommand = "enter-session"

// Exec runs a program in a session, or the session's own command where Argv is empty, and returns its exit code; a
// signal's is 128 and its number, as shells have it. The command handles signals: a terminal sends them to it
// directly, and Exec passes on others. When the context ends, Exec asks the command to end. A command that could not
// be started is an error with the exit code that shells use.
func (r Runtime) Exec(ctx context.Context, session string, p runtime.Program, s runtime.Streams) (int, error) {
	if p.User != "" {
		return 1, notOther(p.User)
	}
	// Caught and not ignored: the command would inherit an ignored signal.
	signals := make(chan os.Signal, 4)
	defer close(signals)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	command, err := r.command(ctx, session, p)
	if err != nil {
		return 1, err
	}
	command.Stdin, command.Stdout, command.Stderr = s.In, s.Out, s.Err
	if code, err := r.start(command, session, p); err != nil {
		return code, err
	}
	go func() {
		for s := range signals {
			if !typed(s) {
				_ = command.Process.Signal(s) // the process may have ended
			}
		}
	}()
	var ended *exec.ExitError
	if err := command.Wait(); !errors.As(err, &ended) {
		return 0, err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return ended.ExitCode(), nil
}

// start starts a command. The exit code belongs to the error.
func (r Runtime) start(command *exec.Cmd, session string, p runtime.Program) (code int, err error) {
	if p.PrivateMounts && command.Err == nil {
		return startPrivately(command, r.Folder(session))
	}
	if err := command.Start(); err != nil {
		return notRun(command, err)
	}
	return 0, nil
}

// notOther is the error for a user of exec.
func notOther(user string) error {
	return prose.Advice{What: fmt.Sprintf("its programs are processes of the user who runs cosplay, not of %s", user),
		Fix: `leave --user out, or run sessions in containers (runtime = "docker" in the host block)`}
}

// typed reports whether a signal may be from the keys of a terminal, which sends it to all
// programs in its foreground.
func typed(s os.Signal) bool {
	if s != os.Interrupt && s != syscall.SIGQUIT {
		return false
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

func notRun(command *exec.Cmd, err error) (int, error) {
	switch _, missing := os.Stat(command.Dir); {
	case missing != nil:
		return 1, fmt.Errorf("its folder %s does not exist. Fix: cosplay apply recreates a workspace; create any other (mkdir -p)", command.Dir)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		if filepath.Base(command.Args[0]) == "nvidia-smi" {
			return runtime.NotFound, fmt.Errorf("there is no command %q: NVIDIA's program comes with its driver (Debian: package nvidia-smi of non-free). PyTorch, cosplay status and cosplay verify work without it", command.Args[0])
		}
		return runtime.NotFound, fmt.Errorf("there is no command %q", command.Args[0])
	case errors.Is(err, fs.ErrPermission):
		return runtime.CannotRun, fmt.Errorf("%q cannot be run: permission denied", command.Args[0])
	}
	return runtime.CannotRun, err
}

func (r Runtime) command(ctx context.Context, session string, p runtime.Program) (*exec.Cmd, error) {
	dir := r.Folder(session)
	f, err := readFigures(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoFolder
	}
	if err != nil {
		return nil, err
	}
	argv := p.Argv
	if len(argv) == 0 {
		argv = f.Session.Command
	}
	if len(argv) == 0 {
		return nil, fmt.Errorf("its block has no command. Fix: name one: cosplay exec %s -- COMMAND", f.Session.Address.Short())
	}
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = runtime.KillAfter
	command.Dir = cmp.Or(p.Dir, f.Session.Workspace)
	if !filepath.IsAbs(command.Dir) {
		command.Dir = filepath.Join(f.Session.Workspace, command.Dir)
	}
	f.Session.Env = maps.Collect(maps.All(f.Session.Env))
	maps.Copy(f.Session.Env, p.Env)
	maps.DeleteFunc(f.Session.Secret, func(name, _ string) bool { _, given := p.Env[name]; return given })
	command.Env = os.Environ()
	for name, value := range environment(dir, f.Session, f.Slice) {
		command.Env = append(command.Env, name+"="+value) // the last value of a variable has effect
	}
	return command, nil
}

// environment is what is set for the programs of a session in a folder.
func environment(dir string, s resource.Session, sliceID string) map[string]string {
	env := disguise.Environment(s, sliceID, false) // a program without the facade must not use the neighbour's slice
	maps.Copy(env, disguise.MPS(s, resource.MPS{Folder: s.MPS}.Pipes()))
	maps.Copy(env, s.Secret)
	library := filepath.Join(dir, disguise.LibraryDir)
	if rest := cmp.Or(env[resource.LoaderVariable], os.Getenv(resource.LoaderVariable)); rest != "" {
		library += ":" + rest
	}
	env[resource.LoaderVariable] = library
	maps.Copy(env, disguise.PythonPath(s, dir, os.Getenv(disguise.PythonVariable)))
	return env
}

// runs reports whether a process runs in a session: it or one of its ancestors was started there, and loads libraries from
// the session's folder first.
func runs(p resource.Process, c resource.Body) bool {
	return p.Marked(resource.LoaderVariable + "=" + filepath.Join(c.ID, disguise.LibraryDir))
}
