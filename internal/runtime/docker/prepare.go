package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"cosplay/internal/disguise"
	"cosplay/internal/durable"
	"cosplay/internal/inside"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// How long things may take on a machine that is busy with many at once.
const (
	startTime  = 3 * time.Minute
	readyTime  = time.Minute
	removeTime = time.Minute
)

// portTries is how many free ports are tried: another process may take a port before the container starts.
const portTries = 8

// lastLines of a container's log are shown when it fails.
const lastLines = 8

// Prepare creates the container of a session, or brings it up to date: a container with the same content stays. It is
// started if necessary, and waited for.
func (r Runtime) Prepare(ctx context.Context, s resource.Session, given resource.Handle) (resource.Body, error) {
	if err := runtime.CheckSession(s.ID); err != nil {
		return resource.Body{}, err
	}
	if s.Spec.IsZero() {
		return resource.Body{}, fmt.Errorf("session %s has no container to create; run cosplay plan again", s.Address)
	}
	access := r.access()
	err := r.Reaches()
	if err == nil {
		r.Folders, err = filepath.Abs(r.Folders) // mounts need absolute paths
	}
	if err != nil {
		return resource.Body{}, err
	}
	var made resource.Body
	c, err := r.Engine.atTurn(ctx, func() (launched, error) { return r.launch(ctx, access, s, given) })
	if err == nil {
		made, err = r.complete(ctx, s, given.UUID, c)
	}
	if err != nil {
		err = errors.Join(err, r.tidy(context.WithoutCancel(ctx), s.ID))
	}
	return made, err
}

// launched is the container of a session after its start.
type launched struct {
	id    string
	port  int        // for ssh, on the host
	ready *readiness // nil if it ran before
	fresh bool       // created now
	loops bool       // its program has ended again and again

	imported *container.InspectResponse // before its start, where cosplay did not create it; else nil
}

// named is a session with the name that its container has: an imported one keeps its own.
func (c launched) named(s resource.Session) resource.Session {
	if c.imported != nil {
		s.Spec.Name = strings.TrimPrefix(c.imported.Name, "/")
	}
	return s
}

// launch creates and starts a session's container as far as that is necessary.
func (r Runtime) launch(ctx context.Context, access access, s resource.Session, given resource.Handle) (launched, error) {
	there, err := r.find(ctx, s.ID)
	if err == nil && there != nil {
		if r.isImported(there.ID) && r.same(there, s, given) {
			return r.rouse(ctx, s, there)
		}
		err = r.rename(ctx, s, there)
	}
	if err != nil {
		return launched{}, err
	}
	return r.prepare(ctx, access, s, given, there)
}

// complete waits until the session of a started container can be used. If it cannot, complete removes a new container.
func (r Runtime) complete(ctx context.Context, s resource.Session, slice string, c launched) (made resource.Body, err error) {
	if c.ready != nil {
		defer c.ready.close()
	}
	s = c.named(s)
	if !s.Stopped {
		err = r.await(ctx, s, c)
	}
	if err != nil {
		err = fmt.Errorf("container %s: %w%s", s.BodyName(), err, r.lastWords(ctx, c.id))
	} else {
		made, err = r.made(ctx, s, slice, c)
	}
	if err != nil && c.fresh {
		err = errors.Join(err, r.remove(context.WithoutCancel(ctx), c.id))
	}
	return made, err
}

// tidy removes everything of a session that could not be prepared, unless it may have a container, which starts from
// the folder.
func (r Runtime) tidy(ctx context.Context, session string) error {
	if there, err := r.find(ctx, session); err != nil || there != nil {
		return nil // the first error says more
	}
	return errors.Join(r.RemoveDevice(r.device(session)), r.Clear(session))
}

func (r Runtime) prepare(ctx context.Context, access access, s resource.Session, given resource.Handle, there *container.InspectResponse) (launched, error) {
	inspector := disguise.Inspector{Version: r.Version}
	now, err := inspector.Glance(r.Folder(s.ID))
	if err != nil {
		return launched{}, err
	}
	keeps := there != nil && r.same(there, s, given) && (now.Damaged == "" || !there.State.Running)
	granted, err := r.grant(ctx, access, s, given, !keeps || counts(there))
	// A running container goes on with the facades with which it was started, which are mounted file by file. No file
	// of a newer cosplay must be added to them.
	if err == nil && !(keeps && there.State.Running && len(now.Outdated) > 0) {
		image := s.Spec.Image
		if keeps {
			image = there.Image
		}
		var command []string
		if command, err = r.program(ctx, s, image); err == nil {
			err = r.Furnish(s, given, granted.Grant, command)
		}
	}
	if err == nil {
		err = inside.MakeWorkspace(s.Workspace, s.Spec.User)
	}
	if err != nil {
		return launched{}, err
	}
	kept := s.Spec.SSH.Kept
	if there != nil {
		if keeps {
			var c launched
			err := r.hold(ctx, s, there)
			if err == nil {
				c, err = r.rouse(ctx, s, there)
			}
			if !portTaken(err) || s.Spec.SSH.Port != 0 {
				return c, err
			}
		}
		if kept == 0 {
			kept = publishedPort(there)
		}
		if err := r.dismiss(ctx, there); err != nil {
			return launched{}, err
		}
	}
	return r.make(ctx, s, given.UUID, granted, kept)
}

// same reports whether a container is what the session requests.
func (r Runtime) same(there *container.InspectResponse, s resource.Session, given resource.Handle) bool {
	l := there.Config.Labels
	return s.HasHash(r.Owner.Key, l[labelHash]) && (resource.LiveSlice{Slice: s.Slice, Handle: given}).IsCalled(l[labelSlice]) &&
		!there.State.Dead && there.State.Status != container.StateRemoving
}

// counts reports whether a container has the file in which programs count. A container of an older cosplay may lack
// it, and goes on without the disguise of CUDA.
func counts(there *container.InspectResponse) bool {
	return mounts(there, inside.InContainer(inside.UsageFile))
}

func mounts(there *container.InspectResponse, at string) bool {
	return slices.ContainsFunc(there.Mounts, func(m container.MountPoint) bool { return m.Destination == at })
}

// make creates a container and starts it. If that fails, it removes the container.
func (r Runtime) make(ctx context.Context, s resource.Session, slice string, g grant, kept int) (launched, error) {
	for try := 1; ; try++ {
		port, err := s.Spec.SSH.Port, error(nil)
		if s.Spec.SSH.Enabled && port == 0 {
			port, err = r.choosePort(ctx, s.Spec.SSH.Bind, kept)
		}
		if err != nil {
			return launched{}, err
		}
		durable.Moment("before the container of %s is made", s.ID)
		id, err := r.create(ctx, s, slice, g, port)
		if err != nil {
			return launched{}, err
		}
		durable.Moment("before the container of %s is started", s.ID)
		c, err := r.start(ctx, s, launched{id: id, port: port, fresh: true})
		if err == nil {
			return c, nil
		}
		if left := r.remove(context.WithoutCancel(ctx), id); left != nil {
			return launched{}, errors.Join(err, left)
		}
		if !portTaken(err) || s.Spec.SSH.Port != 0 || try == portTries {
			return launched{}, err
		}
		kept = 0
	}
}

// start starts a container, after it has opened the pipe through which cosplay-init reports. That of a session that the
// user has stopped stays as it is.
func (r Runtime) start(ctx context.Context, s resource.Session, c launched) (launched, error) {
	if s.Stopped {
		return c, nil
	}
	var err error
	if c.imported == nil { // else no cosplay-init reports
		if c.ready, err = openReadiness(filepath.Join(r.Inside(s.ID), inside.ReadyFile)); err != nil {
			return launched{}, err
		}
	}
	starting, cancel := within(ctx, startTime)
	defer cancel()
	if err = r.Engine.client.ContainerStart(starting, c.id, container.StartOptions{}); err == nil {
		return c, nil
	}
	if c.ready != nil {
		c.ready.close()
	}
	what, ofSSH := r.aboutPort(ctx, s, c.port, err)
	if c.imported != nil {
		what, ofSSH = r.aboutImported(ctx, s, c.imported, err), false
	}
	if err = r.Engine.explain("starting the container "+s.BodyName(), err, what); ofSSH {
		err = portError{err}
	}
	return launched{}, err
}

// made is a container whose session can be used. One that existed before, or that runs a command, is inspected once
// more: only the engine knows the image of the first, and the second may have ended.
func (r Runtime) made(ctx context.Context, s resource.Session, slice string, c launched) (resource.Body, error) {
	if image, err := r.Engine.image(ctx, s.Spec.Image); err == nil && c.fresh && !s.HasProgram() && !s.Stopped {
		made := r.container(c.id, image.id, container.StateRunning, r.labels(s, slice))
		made.SSHPort = c.port
		return made, r.know(s, c.port)
	}
	there, err := r.inspectOwn(ctx, c.id)
	if err != nil {
		return resource.Body{}, err
	}
	if there == nil {
		return resource.Body{}, fmt.Errorf("container %s: another process removed it at once; cosplay apply recreates it", s.BodyName())
	}
	made := r.container(there.ID, there.Image, there.State.Status, there.Config.Labels)
	if made.State != resource.Running && !s.Stopped {
		return resource.Body{}, fmt.Errorf("container %s: it ended at once, with code %d%s", s.BodyName(), there.State.ExitCode, r.lastWords(ctx, c.id))
	}
	if n := r.Engine.restarts(there); c.loops && n > 0 { // the engine may have tried again a moment ago
		return resource.Body{}, fmt.Errorf("container %s: it restarts again and again (%d times so far)%s", s.BodyName(), n, r.lastWords(ctx, c.id))
	}
	made.SSHPort = publishedPort(there)
	if c.imported != nil { // the keys of its ssh server are not cosplay's
		return made, nil
	}
	return made, r.know(s, made.SSHPort)
}

// know writes the known_hosts file of a session, if it has ssh.
func (r Runtime) know(s resource.Session, port int) error {
	if port == 0 {
		return nil
	}
	if _, err := r.Know(s.ID, s.Spec.SSH, port); err != nil {
		return fmt.Errorf("writing the session folder: %w", err)
	}
	return nil
}

// lastWords are the last lines of a container's log, to be added to an error.
func (e *Engine) lastWords(ctx context.Context, id string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	log, err := e.client.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: fmt.Sprint(lastLines)})
	if err != nil {
		return ""
	}
	defer log.Close()
	var said bytes.Buffer
	if _, err := stdcopy.StdCopy(&said, &said, log); err != nil || said.Len() == 0 {
		return ""
	}
	return ". Its last words:\n  " + strings.ReplaceAll(strings.TrimSpace(said.String()), "\n", "\n  ")
}

// Unprepare removes the container of a session, its device and its folder; never its workspace, nor a foreign
// container. It returns what its programs used.
func (r Runtime) Unprepare(ctx context.Context, session string) (used resource.Use, err error) {
	if err := runtime.CheckSession(session); err != nil {
		return used, err
	}
	there, err := r.find(ctx, session)
	if err == nil && there != nil {
		err = r.dismiss(ctx, there)
	}
	if err != nil {
		return used, err
	}
	if err := r.RemoveDevice(r.device(session)); err != nil {
		return used, err
	}
	return disguise.LastUse(filepath.Join(r.Inside(session), inside.UsageFile)), r.Clear(session)
}

// dismiss removes a container of the project. A command of the user's, or the programs of an imported container, are
// asked to end first; cosplay-init gives them some time.
func (e *Engine) dismiss(ctx context.Context, there *container.InspectResponse) error {
	if l := there.Config.Labels; there.State.Running && (l[labelCommand] != "" || l[labelSeal] == "") {
		// What does not end is removed anyway.
		_ = e.client.ContainerStop(ctx, there.ID, container.StopOptions{})
	}
	return e.remove(ctx, there.ID)
}

// remove removes a container with its unnamed volumes, and returns when it is removed, by any process.
func (e *Engine) remove(ctx context.Context, id string) error {
	ctx, cancel := within(ctx, removeTime)
	defer cancel()
	for wait := time.Duration(0); ; wait = min(wait+10*time.Millisecond, 200*time.Millisecond) {
		err := e.client.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if errdefs.IsNotFound(err) {
			return nil
		}
		if errdefs.IsConflict(err) && strings.Contains(err.Error(), "already in progress") {
			if err = pause(ctx, wait); err == nil {
				continue
			}
		}
		return e.explain("removing the container "+short(id), err, subject{})
	}
}
