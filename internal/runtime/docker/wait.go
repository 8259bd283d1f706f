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

// settleTime is how long a session with a command, or without ssh, must not end
// to be taken to run. A variable, for tests.
var settleTime = 300 * time.Millisecond

// await waits until a session can be used: until its ssh server greets, which it
// does once the command runs, and until the command has not ended for a while.
func (r Runtime) await(ctx context.Context, id string, s resource.Session, port int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	ended, failed := r.Engine.client.ContainerWait(ctx, id, container.WaitConditionNotRunning)
	ready := make(chan error, 1)
	calm := settleTime // read here: the goroutine may outlive this call
	go func() { ready <- settles(ctx, s, port, calm) }()
	select {
	case end := <-ended:
		return fmt.Errorf("it ended at once, with code %d; a session lasts as long as the command of its block, or stays up without one", r.exitCode(ctx, id, s.Spec.Restart, end.StatusCode))
	case err := <-ready:
		return err
	case err := <-failed:
		if ctx.Err() != nil {
			return <-ready
		}
		return explain("waiting for it", err, subject{})
	}
}

// exitCode is what a container ended with. Of one that it starts again at once,
// the engine may tell the 0 of the fresh start; the next ends tell the truth.
func (r Runtime) exitCode(ctx context.Context, id, restart string, told int64) int64 {
	if restart != string(container.RestartPolicyAlways) && restart != string(container.RestartPolicyUnlessStopped) {
		return told
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for range 3 {
		if told != 0 {
			break
		}
		ended, failed := r.Engine.client.ContainerWait(ctx, id, container.WaitConditionNextExit)
		select {
		case end := <-ended:
			told = end.StatusCode
		case err := <-failed:
			if err != nil {
				return told
			}
		}
	}
	return told
}

// settles returns when a session answers and, where it may end by itself, has been calm for a time.
func settles(ctx context.Context, s resource.Session, port int, calm time.Duration) error {
	if s.Spec.SSH.Enabled {
		if err := answers(ctx, s.Spec.SSH, port); err != nil || len(s.Command) == 0 {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(calm):
		return nil
	}
}

// answers returns when the session's ssh server greets.
func answers(ctx context.Context, s resource.SSH, port int) error {
	address := net.JoinHostPort(runtime.Reachable(s.Bind), strconv.Itoa(port))
	for wait := pollFirst; ; wait = min(wait*3/2, pollLast) {
		err := greets(ctx, address)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("its ssh server does not answer on %s (%w): %w; see whether a firewall is between, and cosplay logs", address, err, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// greets asks a server for its banner. That it takes a connection proves
// nothing: the engine's proxy does so before anybody listens behind it.
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
