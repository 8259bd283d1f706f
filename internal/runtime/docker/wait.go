package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sys/unix"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

const (
	pollFirst = 2 * time.Millisecond
	pollLast  = 50 * time.Millisecond
	greeting  = "SSH-"
)

// settleTime is how long a session's command must run before the session counts as started. A variable, for tests.
var settleTime = 100 * time.Millisecond

// readiness is the named pipe through which cosplay-init reports that a session runs. It exists only while its
// container starts: a program that reads a folder as a whole would wait at the pipe forever.
type readiness struct{ *os.File }

// openReadiness makes the pipe. It is opened for writing as well, since a pipe without a writer is at its end.
func openReadiness(path string) (*readiness, error) {
	if err := os.RemoveAll(path); err != nil { // of an interrupted run
		return nil, err
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("making the named pipe %s: %w; move the project to a file system that has named pipes", path, err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	return &readiness{pipe}, err
}

func (r *readiness) close() {
	_ = os.Remove(r.Name())
	_ = r.Close()
}

// wait returns when cosplay-init reports that its session runs.
func (r *readiness) wait(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("cosplay-init does not report that the session runs: %w; see cosplay logs", cmp.Or(context.Cause(ctx), err))
	}
	return nil
}

// await waits until a session can be used: until cosplay-init reports that it runs, until its ssh server answers, and
// until its command has run for a moment.
func (r Runtime) await(ctx context.Context, s resource.Session, c launched) error {
	ctx, cancel := within(ctx, readyTime)
	defer cancel()
	ended, failed := r.Engine.client.ContainerWait(ctx, c.id, container.WaitConditionNotRunning)
	settled := make(chan error, 1)
	calm := settleTime // read here: the goroutine may outlive this call
	if c.loops {
		calm = steady
	}
	go func() { settled <- settles(ctx, s, c, calm) }()
	select {
	case end := <-ended:
		if c.imported != nil {
			return fmt.Errorf("its program ended at once, with code %d", end.StatusCode)
		}
		return fmt.Errorf("it ended at once, with code %d; a session lasts as long as the command of its block, or stays up without one",
			r.exitCode(ctx, c.id, s.Spec.Restart, end.StatusCode))
	case err := <-settled:
		return err
	case err := <-failed:
		if ctx.Err() != nil {
			return <-settled
		}
		return r.Engine.explain("waiting for it", err, subject{})
	}
}

// exitCode is the exit code of a container. If the engine restarts the container at once, it may report the 0 of the
// new start; the next ends have the real code.
func (e *Engine) exitCode(ctx context.Context, id, restart string, code int64) int64 {
	if restart != string(container.RestartPolicyAlways) && restart != string(container.RestartPolicyUnlessStopped) {
		return code
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for try := 0; try < 3 && code == 0; try++ {
		ended, failed := e.client.ContainerWait(ctx, id, container.WaitConditionNextExit)
		select {
		case end := <-ended:
			code = end.StatusCode
		case err := <-failed:
			if err != nil {
				return code
			}
		}
	}
	return code
}

// settles returns when a session runs, answers and, if it may end by itself, has run for a moment. An imported container
// may serve no ssh.
func settles(ctx context.Context, s resource.Session, c launched, calm time.Duration) error {
	if c.ready != nil {
		if err := c.ready.wait(ctx); err != nil {
			return err
		}
	}
	if s.Spec.SSH.Enabled && c.imported == nil {
		if err := answers(ctx, s.Spec.SSH, c.port); err != nil {
			return err
		}
	}
	if !s.HasProgram() && c.imported == nil {
		return nil
	}
	return pause(ctx, calm)
}

// pause waits. If the context ends first, it returns the cause.
func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}

// answers returns when the session's ssh server sends its banner.
func answers(ctx context.Context, s resource.SSH, port int) error {
	address := net.JoinHostPort(runtime.Reachable(s.Bind), strconv.Itoa(port))
	for wait := pollFirst; ; wait = min(wait*3/2, pollLast) {
		err := greets(ctx, address)
		if err == nil {
			return nil
		}
		if ended := pause(ctx, wait); ended != nil {
			return fmt.Errorf("its ssh server does not answer on %s (%w): %w; see whether a firewall is between, and cosplay logs", address, err, ended)
		}
	}
}

// bannerTime is how long a server may take to send its banner. A variable, for tests.
var bannerTime = 5 * time.Second

// greets reads a server's banner. A connection alone proves nothing: the engine's proxy accepts it before a server
// listens behind it.
func greets(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	shut := func() { _ = conn.Close() } // nothing was written to it
	defer shut()
	defer context.AfterFunc(ctx, shut)()
	if err := conn.SetReadDeadline(time.Now().Add(bannerTime)); err != nil {
		return err
	}
	banner := make([]byte, len(greeting))
	if _, err := io.ReadFull(conn, banner); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("it accepts the connection and sends nothing for %s", bannerTime)
	} else if err != nil {
		return err
	}
	if string(banner) != greeting {
		return fmt.Errorf("what answers is no ssh server: %q", banner)
	}
	return nil
}
