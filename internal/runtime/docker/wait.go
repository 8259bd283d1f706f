package docker

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

const (
	pollFirst = 2 * time.Millisecond
	pollLast  = 50 * time.Millisecond
	greeting  = "SSH-"
)

// settleTime is how long a session with a command, or without ssh, must run before it counts as started. A variable,
// for tests.
var settleTime = 300 * time.Millisecond

// await waits until a session can be used: until its ssh server answers, which it does once the command runs, and
// until the command has run for a while.
func (r Runtime) await(ctx context.Context, id string, s resource.Session, port int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	ended, failed := r.Engine.client.ContainerWait(ctx, id, container.WaitConditionNotRunning)
	ready := make(chan error, 1)
	calm := settleTime // read here: the goroutine may outlive this call
	go func() { ready <- settles(ctx, s, port, calm) }()
	select {
	case end := <-ended:
		return fmt.Errorf("it ended at once, with code %d; a session lasts as long as the command of its block, or stays up without one",
			r.exitCode(ctx, id, s.Spec.Restart, end.StatusCode))
	case err := <-ready:
		return err
	case err := <-failed:
		if ctx.Err() != nil {
			return <-ready
		}
		return r.Engine.explain("waiting for it", err, subject{})
	}
}

// exitCode is the exit code of a container. If the engine restarts the container at once, it may report the 0 of the
// new start; the next ends have the real code.
func (r Runtime) exitCode(ctx context.Context, id, restart string, code int64) int64 {
	if restart != string(container.RestartPolicyAlways) && restart != string(container.RestartPolicyUnlessStopped) {
		return code
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for try := 0; try < 3 && code == 0; try++ {
		ended, failed := r.Engine.client.ContainerWait(ctx, id, container.WaitConditionNextExit)
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

// settles returns when a session answers and, if it may end by itself, has run for a time.
func settles(ctx context.Context, s resource.Session, port int, calm time.Duration) error {
	if s.Spec.SSH.Enabled {
		if err := answers(ctx, s.Spec.SSH, port); err != nil || len(s.Command) == 0 {
			return err
		}
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
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	banner := make([]byte, len(greeting))
	if _, err := io.ReadFull(conn, banner); err != nil {
		return err
	}
	if string(banner) != greeting {
		return fmt.Errorf("what answers is no ssh server: %q", banner)
	}
	return nil
}
