package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
	"golang.org/x/term"

	"cosplay/internal/initd"
	"cosplay/internal/initd/environ"
	"cosplay/internal/prose"
	"cosplay/internal/runtime"
)

// Exec runs a program in a session, as its user and in its environment, and returns its exit code: 127 if there is no
// such program, 126 if it cannot be run. Without Argv it runs a login shell.
//
// Signals of this process (interrupt, terminate, hang up) are sent on to the program; with a terminal, Ctrl-C is no
// signal but a byte like any other. Engines cannot send signals to such a program, so the kernel does: this needs the
// program's user or root on the engine's machine. If it fails, Exec leaves the program running and ends with the
// signal's code.
func (r Runtime) Exec(ctx context.Context, session string, p runtime.Program, streams runtime.Streams) (code int, err error) {
	there, err := r.inhabited(ctx, session)
	if err != nil {
		return 0, err
	}
	if there.State.Paused {
		return 0, prose.Advice{What: fmt.Sprintf("its container %s is paused", r.called(session)), Fix: "cosplay apply resumes it"}
	}
	if !there.State.Running || there.State.Restarting {
		return 0, fmt.Errorf("its container %s does not run (%s); cosplay apply starts it, cosplay logs shows why it ended", r.called(session), there.State.Status)
	}
	x := execution{client: r.Engine.client, container: there.ID, streams: streams}
	x.in, x.out = terminal(streams.In), terminal(streams.Out)
	if r.isImported(there.ID) {
		x.adapt = func(o *container.ExecOptions) { r.plainly(there, p, o) }
	}
	code, err = x.run(ctx, p)
	if lost := (outputError{}); errors.As(err, &lost) {
		return 0, fmt.Errorf("what it writes cannot be passed on: %w", lost.error)
	}
	if err != nil {
		return 0, r.Engine.explain("running a program in "+r.called(session), err, subject{name: r.called(session)})
	}
	return code, nil
}

// execution is one program that runs.
type execution struct {
	client    *client.Client
	container string
	id        string
	streams   runtime.Streams
	in, out   *os.File // terminals; nil where they are none
	signals   chan os.Signal
	unwritten error // why output could not be passed on

	adapt func(*container.ExecOptions) // for a container without cosplay-init; else nil
}

func terminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

func (x *execution) tty() bool { return x.in != nil && x.out != nil }

func (x *execution) run(ctx context.Context, p runtime.Program) (int, error) {
	how := initd.How{User: p.User, Dir: p.Dir, Env: slices.Sorted(maps.Keys(p.Env))}
	options := container.ExecOptions{User: "0", Tty: x.tty(), Env: environ.Vars(p.Env).List(),
		AttachStdin: x.streams.In != nil, AttachStdout: true, AttachStderr: true}
	attach := container.ExecAttachOptions{Tty: x.tty()}
	if x.tty() {
		if kind := os.Getenv("TERM"); kind != "" {
			options.Env = append([]string{"TERM=" + kind}, options.Env...)
		}
		if width, height, err := term.GetSize(int(x.out.Fd())); err == nil {
			how.Rows, how.Columns = height, width
		}
	}
	options.Cmd = initd.Exec(how, p.Argv...)
	if x.adapt != nil {
		x.adapt(&options)
	}
	created, err := x.client.ContainerExecCreate(ctx, x.container, options)
	if err != nil {
		return 0, err
	}
	x.id = created.ID
	if x.tty() {
		before, err := term.MakeRaw(int(x.in.Fd())) // every key reaches the program
		if err != nil {
			return 0, fmt.Errorf("setting the terminal: %w", err)
		}
		defer func() { _ = term.Restore(int(x.in.Fd()), before) }()
	}
	x.signals = make(chan os.Signal, 4)
	signal.Notify(x.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(x.signals)
	connection, err := x.client.ContainerExecAttach(ctx, x.id, attach)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	if x.tty() {
		defer x.followSize(ctx)()
	}
	if code, done, err := x.converse(ctx, connection); done || err != nil {
		return code, err
	}
	return x.exitCode(ctx)
}

// converse copies the streams until the program's output ends. done says that the program was left running, with the
// code to end with.
func (x *execution) converse(ctx context.Context, connection types.HijackedResponse) (code int, done bool, err error) {
	if x.streams.In != nil {
		go func() { // ends with the connection or, from a terminal, with this process
			_, _ = io.Copy(connection.Conn, x.streams.In)
			_ = connection.CloseWrite()
		}()
	}
	output := make(chan error, 1)
	go func() {
		var err error
		out, complaints := &sink{Writer: x.streams.Out}, &sink{Writer: x.streams.Err}
		if x.tty() {
			_, err = io.Copy(out, connection.Reader)
		} else {
			_, err = stdcopy.StdCopy(out, complaints, connection.Reader)
		}
		x.unwritten = cmp.Or(out.err, complaints.err)
		output <- err
	}()
	for {
		select {
		case err := <-output:
			switch {
			case ctx.Err() != nil: // which may end the connection first
				return 0, true, x.giveUp(ctx, output)
			case x.unwritten != nil:
				return x.noReader(ctx)
			}
			return 0, false, err
		case <-ctx.Done():
			return 0, true, x.giveUp(ctx, output)
		case s := <-x.signals:
			if err := x.pass(ctx, s.(syscall.Signal)); err != nil {
				return 128 + int(s.(syscall.Signal)), true, nil
			}
		}
	}
}

// sink keeps the error of its last write.
type sink struct {
	io.Writer
	err error
}

func (s *sink) Write(p []byte) (n int, err error) {
	n, s.err = s.Writer.Write(p)
	return n, s.err
}

// noReader ends a program whose output cannot be written any more, as the program's own write would: with SIGPIPE if
// the reader has closed, otherwise with an error.
func (x *execution) noReader(ctx context.Context) (code int, done bool, err error) {
	_ = x.pass(ctx, syscall.SIGPIPE) // as far as it can be done
	if errors.Is(x.unwritten, syscall.EPIPE) {
		return 128 + int(syscall.SIGPIPE), true, nil
	}
	return 0, true, outputError{x.unwritten}
}

// outputError is an error of writing the output, not of the engine.
type outputError struct{ error }

// giveUp asks a program to end when its caller has ended, and kills it if it does not.
func (x *execution) giveUp(ctx context.Context, ended <-chan error) error {
	still := context.WithoutCancel(ctx)
	_ = x.pass(still, syscall.SIGTERM) // as far as it can be done
	select {
	case err := <-ended:
		_ = err // the cause is that of the context
	case <-time.After(runtime.KillAfter):
		_ = x.pass(still, syscall.SIGKILL)
	}
	return context.Cause(ctx)
}

// pass sends a signal to the program if the process with its pid is in the container: an engine on another machine
// has its own pids.
func (x *execution) pass(ctx context.Context, s syscall.Signal) error {
	pid, err := x.pid(ctx)
	if err != nil {
		return err
	}
	if !runsHere(pid, x.container) {
		return fmt.Errorf("process %d is another's", pid)
	}
	return syscall.Kill(pid, s)
}

// pid is the program's pid on the engine's machine. The engine may report it some time after the start.
func (x *execution) pid(ctx context.Context) (int, error) {
	for wait := pollFirst; wait < time.Second; wait *= 2 {
		state, err := x.client.ContainerExecInspect(ctx, x.id)
		if err != nil || state.Pid > 0 {
			return state.Pid, err
		}
		time.Sleep(wait)
	}
	return 0, errors.New("the engine does not report the program's pid")
}

// exitCode waits for the end of the program, which may be later than that of its output.
func (x *execution) exitCode(ctx context.Context) (int, error) {
	for wait := pollFirst; ; wait = min(2*wait, time.Second) {
		state, err := x.client.ContainerExecInspect(ctx, x.id)
		if err != nil {
			return 0, err
		}
		if !state.Running {
			return state.ExitCode, nil
		}
		if err := pause(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// followSize keeps the program's terminal as large as the user's. The program may not exist yet, so the first resize
// is tried a few times.
func (x *execution) followSize(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	resize := func() error {
		width, height, err := term.GetSize(int(x.out.Fd()))
		if err != nil {
			return nil // the terminal has no size
		}
		return x.client.ContainerExecResize(ctx, x.id, container.ResizeOptions{Width: uint(width), Height: uint(height)})
	}
	go func() {
		for wait := pollFirst; resize() != nil && wait < time.Second && ctx.Err() == nil; wait *= 2 {
			time.Sleep(wait)
		}
		for range changes {
			_ = resize() // the next change tries again
		}
	}()
	return func() {
		signal.Stop(changes)
		close(changes)
		cancel()
	}
}
