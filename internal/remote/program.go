package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"cosplay/internal/durable"
	"cosplay/internal/interrupt"
	"cosplay/internal/pattern"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Exec runs a program in a session. The machine is given its words and variables before, since others can read the
// arguments of a command, and asked afterwards how it ended.
func (r Runtime) Exec(ctx context.Context, session string, p runtime.Program, s runtime.Streams) (int, error) {
	return r.stream(ctx, question{IDs: []string{session}, Program: &p}, s)
}

// stream asks for something that has streams, and returns the exit code of what ran.
func (r Runtime) stream(ctx context.Context, q question, s runtime.Streams) (int, error) {
	q.Op = opProgram
	a, err := r.ask(ctx, q)
	if err != nil {
		return 1, err
	}
	program, onTerminal := a.Program, isTerminal(s.In) && isTerminal(s.Out)
	run := r.Run(program, onTerminal)
	command := exec.Command(run[0], run[1:]...)
	command.Stdout, command.Stderr = s.Out, s.Err
	// The keys of a terminal are for the program over there, and not for ssh.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: !onTerminal}
	if err := give(command, s.In, onTerminal); err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := command.Start(); err != nil {
		return 1, err
	}
	ended := make(chan struct{})
	go r.pass(ctx, signals, ended, program, command)
	_ = command.Wait() // the outcome says more than ssh's exit code
	close(ended)
	for try := 0; try == 0 || err != nil && try < 2; try++ { // the agent may have been lost meanwhile; the next one answers
		a, err = r.ask(context.Background(), question{Op: opOutcome, IDs: []string{program}})
	}
	switch {
	case err != nil:
		return 1, err
	case a.Outcome == nil && unread(s.Out):
		return 128 + int(syscall.SIGPIPE), nil
	case a.Outcome == nil:
		return 1, prose.Advice{What: "the connection has ended before its program, which gets a hangup", Fix: "run the command again"}
	case a.Outcome.Vacant:
		return a.Outcome.Code, runtime.VacantError{Advice: a.Outcome.Error}
	case a.Outcome.Error.What != "":
		return a.Outcome.Code, a.Outcome.Error
	}
	return a.Outcome.Code, nil
}

// give gives a command its input: by a pipe where that is a terminal, which only the group in front can read, or no file. The
// command may end before its input.
func give(command *exec.Cmd, in io.Reader, onTerminal bool) error {
	if _, file := in.(*os.File); in == nil || onTerminal || file && !isTerminal(in) {
		command.Stdin = in
		return nil
	}
	pipe, err := command.StdinPipe()
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(pipe, in)
		_ = pipe.Close()
	}()
	return nil
}

// pass passes signals to a program over there, and asks it to end where the context does.
func (r Runtime) pass(ctx context.Context, signals <-chan os.Signal, ended <-chan struct{}, program string, command *exec.Cmd) {
	send := func(s syscall.Signal) {
		_, _ = r.ask(context.Background(), question{Op: opSignal, IDs: []string{program}, Signal: int(s)}) // it may have ended
	}
	over := ctx.Done()
	for {
		select {
		case <-ended:
			return
		case s := <-signals:
			send(s.(syscall.Signal))
		case <-over:
			over = nil
			send(syscall.SIGTERM)
			time.AfterFunc(runtime.KillAfter, func() { _ = command.Process.Kill() })
		}
	}
}

func isTerminal(stream any) bool {
	f, is := stream.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}

// keptFor is how long a program waits for its start, and its outcome for the client.
const keptFor = 24 * time.Hour

// keep writes a program to a file that only the user can read, and returns its name.
func (s Server) keep(q question) (string, error) {
	old, _ := os.ReadDir(s.Programs)
	for _, e := range old {
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > keptFor && !s.runs(strings.TrimSuffix(e.Name(), runs)) {
			_ = os.Remove(filepath.Join(s.Programs, e.Name()))
		}
	}
	text, err := json.Marshal(q)
	if err == nil {
		err = os.MkdirAll(s.Programs, 0o700)
	}
	name := rand.Text()
	if err == nil {
		err = durable.WriteFile(s.file(name), text, 0o600)
	}
	return name, err
}

var programName = pattern.Of(`^[A-Z2-7]{26}$`)

func (s Server) file(program string) string { return filepath.Join(s.Programs, program) }

// Endings of the files of a program.
const (
	runs    = ".pid"
	endedAs = ".outcome"
)

// Start runs a program that was kept, once, and returns its exit code. The client asks for its outcome.
func (s Server) Start(ctx context.Context, name string, streams runtime.Streams) (int, error) {
	if !programName().MatchString(name) {
		return 1, errors.New("that is not the name of a program")
	}
	text, err := durable.ReadFile(s.file(name))
	if err := cmp.Or(err, os.Remove(s.file(name)), durable.WriteFile(s.file(name)+runs, []byte(durable.Self()), 0o600)); err != nil {
		return 1, err
	}
	code, err := s.start(ctx, text, streams)
	o := outcome{Code: code}
	if err != nil {
		a := prose.AdviceOf(err)
		if vacant, is := errors.AsType[runtime.VacantError](err); is {
			a, o.Vacant = vacant.Advice, true
		}
		o.Error = prose.Advice{What: a.What, Fix: a.Fix}
	}
	text, failed := json.Marshal(o)
	return code, errors.Join(failed, durable.WriteFile(s.file(name)+endedAs, text, 0o600))
}

func (s Server) start(ctx context.Context, text []byte, streams runtime.Streams) (int, error) {
	var q question
	if err := json.Unmarshal(text, &q); err != nil {
		return 1, err
	}
	if err := q.check(); err != nil {
		return 1, err
	}
	in, err := s.Open(q.Runtime, q.Owner)
	if err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go hangUp(streams, cancel)
	if q.Program != nil {
		return in.Exec(ctx, q.IDs[0], *q.Program, streams)
	}
	ctx, release := interrupt.Context(ctx, func() {}, func() {}) // the client kills it
	defer release()
	switch {
	case q.Notify:
		if of, can := in.(runtime.Notifier); can {
			of.Notify(ctx, func() { _, _ = fmt.Fprintln(streams.Out) }) // hangUp notices that it is not read
			return 0, nil
		}
	case q.Logs != nil:
		if of, can := in.(runtime.Logger); can {
			return 0, of.Logs(ctx, q.IDs[0], *q.Logs, streams.Out, streams.Err)
		}
	case q.Pack != nil || q.Unpack != nil:
		if of, can := in.(runtime.Copier); can {
			return 0, carry(ctx, of, q, streams)
		}
	default:
		if of, can := in.(imager); can {
			return 0, of.Ensure(ctx, q.Image, q.How, func(line string) { _, _ = fmt.Fprintln(streams.Out, line) })
		}
	}
	return 1, cannot(q)
}

func cannot(q question) error {
	return fmt.Errorf("sessions that run %s cannot do that", resource.RuntimeNamed(q.Runtime).Where)
}

// unread reports whether an output is a pipe that no process reads any more.
func unread(out io.Writer) bool {
	f, is := out.(*os.File)
	if !is {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLERR != 0
}

// hangUp sends this process a hangup once its output cannot be read any more: the connection has ended. A program that
// writes has its time to notice it first. One that goes on is ended, as where a client is.
func hangUp(s runtime.Streams, end func()) {
	out, is := s.Out.(*os.File)
	if !is {
		return
	}
	for {
		fds := []unix.PollFd{{Fd: int32(out.Fd())}}
		if n, err := unix.Poll(fds, 1000); err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
			time.Sleep(time.Second)
			_ = syscall.Kill(os.Getpid(), syscall.SIGHUP)
			time.Sleep(runtime.KillAfter)
			end()
			return
		}
	}
}

// signal sends a signal to the process that runs a program, which passes it on.
func (s Server) signal(program string, what syscall.Signal) error {
	if !s.runs(program) {
		return nil // it has not begun, or has ended
	}
	text, err := os.ReadFile(s.file(program) + runs)
	number, _, _ := strings.Cut(string(text), "-")
	pid, bad := strconv.Atoi(number)
	if err := cmp.Or(err, bad); err != nil {
		return err
	}
	return syscall.Kill(pid, what)
}

// runs reports whether the process still exists that runs a program.
func (s Server) runs(program string) bool {
	text, err := os.ReadFile(s.file(program) + runs)
	return err == nil && durable.Runs(string(text), time.Now())
}

// outcome is how a program ended; nil if it is not known.
func (s Server) outcome(program string) (*outcome, error) {
	text, err := os.ReadFile(s.file(program) + endedAs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var o outcome
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	_, _ = os.Remove(s.file(program)+runs), os.Remove(s.file(program)+endedAs)
	s.tidy()
	return &o, err
}

// tidy removes the folders of the project that are empty.
func (s Server) tidy() {
	for _, folder := range s.Place.Sessions {
		if _, err := os.Stat(folder); err == nil {
			return // there are sessions
		}
	}
	_ = os.RemoveAll(s.Programs) // outcomes that no client asked for
	for _, dir := range []string{s.Place.Workspace, s.Programs, s.Place.Folders} {
		for strings.HasPrefix(dir, s.Root+"/") {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
}
