package docker

import (
	"context"

	"github.com/docker/docker/api/types/container"

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

// rouse makes a container that exists run as it was made to.
func (r Runtime) rouse(ctx context.Context, s resource.Session, there *container.InspectResponse) (launched, error) {
	if err := r.rejoin(ctx, s, there); err != nil {
		return launched{}, err
	}
	if err := r.resume(ctx, s.ID, there); err != nil {
		return launched{}, err
	}
	c := launched{id: there.ID, port: publishedPort(there), loops: r.Engine.restarts(there) > 0}
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
