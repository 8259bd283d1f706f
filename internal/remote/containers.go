package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Containers is a Runtime whose sessions are containers of an engine over there.
type Containers struct {
	Runtime
	driver runtime.Driver
	here   runtime.Host // of known_hosts, on this machine
}

// Inspect reads what the engine is, and which images it has.
func (c Containers) Inspect(ctx context.Context) (resource.Engine, error) {
	a, err := c.ask(ctx, question{Op: opInspect})
	if err == nil && a.Engine == nil {
		err = errors.New("it does not say what its engine is")
	}
	if err != nil {
		return resource.Engine{}, err
	}
	return *a.Engine, nil
}

// Reaches fails if no slice reaches the containers.
func (c Containers) Reaches() error {
	_, err := c.ask(context.Background(), question{Op: opReaches})
	return err
}

// Offered is the image to which a name refers in its registry now, as the engine over there finds it.
func (c Containers) Offered(ctx context.Context, name string) (string, error) {
	a, err := c.ask(ctx, question{Op: opOffered, Image: name})
	return a.Image, err
}

// Leftovers finds what interrupted runs have left over there.
func (c Containers) Leftovers(ctx context.Context, listed []resource.Body, known []string) ([]resource.Body, error) {
	a, err := c.ask(ctx, question{Op: opLeftovers, Bodies: prose.Each(listed, toWire), IDs: known})
	return prose.Each(a.Bodies, body.body), err
}

// Stranger finds a container over there that cosplay did not create.
func (c Containers) Stranger(ctx context.Context, ref string) (found *resource.Body, name, lineage, host string, err error) {
	a, err := c.ask(ctx, question{Op: opStranger, Ref: ref})
	if err != nil || len(a.Bodies) == 0 || a.Stranger == nil {
		return nil, "", "", "", err
	}
	b := a.Bodies[0].body()
	return &b, a.Stranger.Name, a.Stranger.Lineage, a.Stranger.Host, nil
}

// Stop stops the container of a session.
func (c Containers) Stop(ctx context.Context, session string) error {
	_, err := c.ask(ctx, question{Op: opStop, IDs: []string{session}})
	return err
}

// Start starts the container of a session as it is.
func (c Containers) Start(ctx context.Context, s resource.Session) (resource.Body, error) {
	a, err := c.ask(ctx, question{Op: opStart, Session: &session{s, s.Secret}})
	if err != nil || len(a.Bodies) == 0 {
		return resource.Body{}, err
	}
	return a.Bodies[0].body(), nil
}

// Unprepare removes the container of a session, and what this machine knows of its host key.
func (c Containers) Unprepare(ctx context.Context, session string) (resource.Use, error) {
	use, err := c.Runtime.Unprepare(ctx, session)
	if err == nil && runtime.CheckSession(session) == nil {
		here := c.here
		here.Folders += c.driver.FolderSuffix
		err = here.Clear(session)
	}
	return use, err
}

// Know writes the known_hosts file of a session on this machine.
func (c Containers) Know(session string, s resource.SSH, port int) (string, error) {
	return c.driver.Login(c.here).Know(session, s, port)
}

// Ensure gets an image over there, and reports its progress.
func (c Containers) Ensure(ctx context.Context, image string, how plan.ImageSource, say func(string)) error {
	_, err := c.stream(ctx, question{Image: image, How: how}, runtime.Streams{Out: &lines{say: say}, Err: io.Discard})
	return err
}

// Logs writes what the container of a session has printed.
func (c Containers) Logs(ctx context.Context, session string, o runtime.LogOptions, out, err io.Writer) error {
	_, failed := c.stream(ctx, question{IDs: []string{session}, Logs: &o}, runtime.Streams{Out: out, Err: err})
	return failed
}

// retryEvents is how long Notify waits after it has lost the machine.
const retryEvents = 30 * time.Second

// Notify calls changed after events of the engine over there, and after a lost connection, until the context ends.
func (c Containers) Notify(ctx context.Context, changed func()) {
	for ctx.Err() == nil {
		_, _ = c.stream(ctx, question{Notify: true}, runtime.Streams{Out: &lines{say: func(string) { changed() }}, Err: io.Discard}) // it is tried again
		select {
		case <-ctx.Done():
		case <-time.After(retryEvents):
			changed()
		}
	}
}

// lines passes on each line that is written, without its end.
type lines struct {
	say  func(string)
	part []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.say(string(line))
		l.part = rest
	}
}
