package docker

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"cosplay/internal/initd"
	"cosplay/internal/resource"
)

// Stop ends the programs of a session: cosplay-init asks the command to end, and gives it some time. The container, its
// files and its port stay.
func (r Runtime) Stop(ctx context.Context, session string) error {
	there, err := r.inhabited(ctx, session)
	if err != nil {
		return err
	}
	if err := r.resume(ctx, session, there); err != nil { // engines do not stop a paused container
		return err
	}
	ctx, cancel := within(ctx, removeTime)
	defer cancel()
	if err := r.Engine.client.ContainerStop(ctx, there.ID, container.StopOptions{}); err != nil {
		return r.Engine.explain("stopping the container "+r.called(session), err, subject{name: r.called(session)})
	}
	return r.Rewrite(session, func(s *resource.Session) { s.Stopped = true })
}

// Start starts the container of a session as it is, and waits until the session can be used.
func (r Runtime) Start(ctx context.Context, s resource.Session) (resource.Body, error) {
	there, err := r.inhabited(ctx, s.ID)
	if err != nil {
		return resource.Body{}, err
	}
	s.Stopped = false
	c, err := r.Engine.atTurn(ctx, func() (launched, error) { return r.rouse(ctx, s, there) })
	if err != nil {
		return resource.Body{}, err
	}
	body, err := r.complete(ctx, s, "", c)
	if err != nil {
		return body, err
	}
	return body, r.Rewrite(s.ID, func(s *resource.Session) { s.Stopped = false })
}

// rouse makes a container that exists run as it was made to. Of an imported one nothing else changes.
func (r Runtime) rouse(ctx context.Context, s resource.Session, there *container.InspectResponse) (launched, error) {
	c := launched{id: there.ID, port: publishedPort(there), loops: r.Engine.restarts(there) > 0}
	if r.isImported(there.ID) {
		c.imported = there
		s = c.named(s)
	} else if err := r.rejoin(ctx, s, there); err != nil {
		return launched{}, err
	}
	if err := r.resume(ctx, s.ID, there); err != nil {
		return launched{}, err
	}
	if there.State.Running {
		return c, nil
	}
	return r.start(ctx, s, c)
}

// resume lets the programs of a paused container run.
func (r Runtime) resume(ctx context.Context, session string, there *container.InspectResponse) error {
	if !there.State.Paused {
		return nil
	}
	err := r.Engine.client.ContainerUnpause(ctx, there.ID)
	return r.Engine.explain("resuming the container "+r.called(session), err, subject{name: r.called(session)})
}

// Entered finds the sessions in whose containers a command of cosplay exec runs, or to whose ssh servers a client is
// connected. The kernel lists the connections, so no program has to run in a container. One that cannot be read counts.
func (r Runtime) Entered(ctx context.Context, sessions []string) (map[string]bool, error) {
	all := map[string]bool{}
	for _, session := range sessions {
		entered, err := r.entered(ctx, session)
		all[session] = entered || err != nil
	}
	return all, nil
}

func (r Runtime) entered(ctx context.Context, session string) (bool, error) {
	there, err := r.inhabited(ctx, session)
	if err != nil || !there.State.Running {
		return false, err
	}
	for _, id := range there.ExecIDs { // podman lists those that have ended as well
		if now, err := r.Engine.client.ContainerExecInspect(ctx, id); err != nil && !errdefs.IsNotFound(err) || now.Running {
			return true, err
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		connections, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", there.State.Pid, table))
		if os.IsNotExist(err) && table == "tcp6" {
			continue // a machine without IPv6
		}
		if err != nil || connected(string(connections), sshPort) {
			return true, err
		}
	}
	return false, nil
}

// established is the state of a connection in the kernel's table.
const established = "01"

// connected reports whether the kernel's table has a connection to a local port.
func connected(table string, port int) bool {
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == established {
			return true
		}
	}
	return false
}

// tellTime is how long the message may take.
const tellTime = 5 * time.Second

// End ends the programs of a session: a message on its terminals, then its container is stopped. cosplay-init sends
// SIGTERM to all programs and gives them up to 7 s; grace is when the engine kills what remains.
func (r Runtime) End(ctx context.Context, session, message string, grace time.Duration) error {
	there, err := r.find(ctx, session)
	if err != nil || there == nil || !there.State.Running {
		return err
	}
	if err := r.resume(ctx, session, there); err != nil {
		return err
	}
	r.tell(ctx, there.ID, message) // without the message the session ends as well
	seconds := int(grace / time.Second)
	ctx, cancel := within(ctx, grace+removeTime)
	defer cancel()
	err = r.Engine.client.ContainerStop(ctx, there.ID, container.StopOptions{Timeout: &seconds})
	return r.Engine.explain("stopping the container "+r.called(session), err, subject{name: r.called(session)})
}

func (e *Engine) tell(ctx context.Context, id, message string) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	created, err := e.client.ContainerExecCreate(ctx, id, container.ExecOptions{User: "0", Cmd: initd.Tell(message), AttachStdout: true, AttachStderr: true})
	if err != nil {
		return
	}
	attached, err := e.client.ContainerExecAttach(ctx, created.ID, container.ExecAttachOptions{})
	if err != nil {
		return
	}
	defer attached.Close()
	if deadline, has := ctx.Deadline(); has {
		_ = attached.Conn.SetDeadline(deadline)
	}
	_, _ = io.Copy(io.Discard, attached.Reader) // until it has ended
}
