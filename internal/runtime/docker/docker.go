// Package docker runs sessions in Docker containers: any image, with cosplay-init as its first program, the session's
// slice and the disguise in it. A container belongs to the project if it has a seal that only the owner of the state
// can make, and the name of a session or its folder. No other container is ever touched.
package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"cosplay/internal/disguise"
	"cosplay/internal/inside"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/runtime/docker/image"
)

// Runtime keeps the containers of one state on one host.
type Runtime struct {
	*Engine
	inside.Sessions
}

// List lists the containers of all sessions, whatever their state.
func (r Runtime) List(ctx context.Context) ([]resource.Body, error) {
	if r.Owner.Lineage == "" {
		ctx, cancel := soon(ctx)
		defer cancel()
		_, err := r.Engine.client.Ping(ctx)
		return nil, r.Engine.explain("asking the Docker engine", err, subject{})
	}
	return r.list(ctx, "")
}

// One lists the container of one session, and does not check its files.
func (r Runtime) One(ctx context.Context, session string) ([]resource.Body, error) {
	there, err := r.inspect(ctx, r.called(session))
	if err != nil {
		return nil, err
	}
	if there != nil { // most often it has its name, and the engine need not look at all containers
		if f := summary(there); f.Labels[labelSession] == session && r.owns(f) {
			r.Engine.read.Store(session, there)
			return []resource.Body{r.body(f, there)}, nil
		}
	}
	return r.list(ctx, session)
}

// summary is a container as a list has it.
func summary(there *container.InspectResponse) container.Summary {
	return container.Summary{ID: there.ID, Names: []string{there.Name}, ImageID: there.Image,
		Labels: there.Config.Labels, Mounts: there.Mounts}
}

// list lists the containers of a session, or of all.
func (r Runtime) list(ctx context.Context, session string) ([]resource.Body, error) {
	found, err := r.ours(ctx, session)
	if err != nil {
		return nil, err
	}
	sessions := map[string][]container.Summary{}
	for _, f := range found {
		id := f.Labels[labelSession]
		sessions[id] = append(sessions[id], f)
	}
	var all []resource.Body
	inspector := disguise.Inspector{Version: r.Version}
	for _, id := range slices.Sorted(maps.Keys(sessions)) {
		// If several containers are possible, any of them shows that there is one.
		f, several := r.pick(id, sessions[id])
		there, err := r.inspect(ctx, f.ID)
		if err != nil {
			return nil, err
		}
		if there == nil {
			continue // removed meanwhile
		}
		if session != "" && several == nil {
			r.Engine.read.Store(session, there)
		}
		c := r.body(f, there)
		if session == "" && c.State != resource.Stopped && !c.Foreign { // else its files are written again when it starts
			sight, err := inspector.Glance(r.Folder(id))
			if err != nil {
				return nil, err
			}
			c.Damaged, c.Outdated, c.Use = sight.Damaged, sight.Outdated, sight.Use
		}
		all = append(all, c)
	}
	return all, nil
}

// body is a session's container, without a check of its files. The state is not that of the list, which lags behind a
// stop.
func (r Runtime) body(f container.Summary, there *container.InspectResponse) resource.Body {
	c := r.container(f.ID, f.ImageID, there.State.Status, f.Labels)
	c.Unstarted = there.State.Status == container.StateCreated
	if c.State == resource.Stopped { // the engine publishes the ports of running containers only
		c.SSHPort = publishedPort(there)
	} else if there.NetworkSettings != nil {
		c.SSHPort = sshPortOf(there.NetworkSettings.Ports)
	}
	if c.Restarts = r.Engine.restarts(there); c.Restarts > 0 {
		c.State = resource.Restarting
	}
	if c.State == resource.Running || c.State == resource.Paused {
		c.Altered, c.Replaced = altered(r.named(f), r.called(c.Session), there), replaced(there)
	}
	c.Bounds = bounds(there)
	return c
}

func (r Runtime) container(id, image string, state container.ContainerState, l map[string]string) resource.Body {
	c := resource.Body{ID: id, Image: image, Session: l[labelSession], Host: r.Host.Name, Runtime: name,
		State: stateOf(state), Hash: l[labelHash], SliceID: l[labelSlice], SecretsInEnv: l[labelPrivate] == "", Foreign: r.isImported(id)}
	c.Serial, _ = strconv.Atoi(l[labelSerial]) // an older cosplay set none: 0
	return c
}

// inhabited is the container of a session for a command in it.
func (r Runtime) inhabited(ctx context.Context, session string) (*container.InspectResponse, error) {
	if err := runtime.CheckSession(session); err != nil {
		return nil, err
	}
	if there, known := r.Engine.read.LoadAndDelete(session); known {
		return there.(*container.InspectResponse), nil
	}
	there, err := r.find(ctx, session)
	if err == nil && there == nil {
		if err = r.nameTaken(ctx, session, r.called(session)); err == nil {
			err = fmt.Errorf("its container %s does not exist; cosplay apply recreates it", r.called(session))
		}
	}
	return there, err
}

// Inspect reads what the engine is, how slices reach its containers, and which images it has.
func (r Runtime) Inspect(ctx context.Context) (resource.Engine, error) {
	ctx, cancel := soon(ctx)
	defer cancel()
	images, err := image.Tags(ctx, r.Engine.client)
	if err != nil {
		return resource.Engine{}, r.Engine.explain("asking the Docker engine", err, subject{})
	}
	r.Engine.shortNames(images)
	names, err := r.foreignNames(ctx)
	return resource.Engine{Name: r.Engine.Name(), Access: r.access().words, Images: images, Names: names, Lifted: r.Engine.lifted()}, err
}

// Ensure pulls an image, or builds cosplay's own.
func (e *Engine) Ensure(ctx context.Context, name string, how plan.ImageSource, say func(string)) error {
	defer e.images.Delete(name) // the name may refer to another image now
	if how == plan.BuildImage {
		return e.reword(image.Build(ctx, e.client, image.BuildOptions{Tag: name}, say))
	}
	return e.reword(image.Pull(ctx, e.client, name, say))
}

// Offered asks the registry of a name for its image. podman has no such request.
func (e *Engine) Offered(ctx context.Context, name string) (offered string, err error) {
	if e.podman {
		return "", nil
	}
	ctx, cancel := soon(ctx)
	defer cancel()
	return image.Offered(ctx, e.client, name)
}

// Logs writes what the container of a session has printed: lines of cosplay-init and of the session's command.
func (r Runtime) Logs(ctx context.Context, session string, o runtime.LogOptions, out, err io.Writer) error {
	there, failed := r.inhabited(ctx, session)
	if failed != nil {
		return failed
	}
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: o.Follow, Tail: o.Tail, Timestamps: o.Timestamps}
	if !o.Since.IsZero() {
		options.Since = o.Since.Format(time.RFC3339Nano)
	}
	log, failed := r.Engine.client.ContainerLogs(ctx, there.ID, options)
	if failed != nil {
		return r.Engine.explain("reading the log of "+r.called(session), failed, subject{name: r.called(session)})
	}
	defer log.Close()
	if _, failed = stdcopy.StdCopy(out, err, log); errors.Is(failed, context.Canceled) {
		return nil // the user has stopped it
	}
	return failed
}

const (
	name         = "docker" // in the configuration and the state
	folderSuffix = ".containers"
)

// Driver is the runtime whose sessions are containers.
var Driver = runtime.Driver{
	Runtime: resource.Runtime{
		Name: name, Title: "Docker", Where: "in containers", Body: "container",
		Attributes:   []string{"image", "pull", "volume", "ssh", "limits", "sudo", "restart", "ports", "network", "name", "entrypoint"},
		RunsPrograms: true, HasShell: true, LeavesFiles: true, UniqueIDs: true, Labelled: true, Named: true, ShownID: 12,
		StopCommand: "docker stop", RemoveCommand: "docker rm -f",
	},
	Auto:         func(simulated bool) bool { return !simulated && Installed() },
	FolderSuffix: folderSuffix,
	Runs:         func(p resource.Process, c resource.Body) bool { return p.Marked(c.ID) },
	Connect:      func(ctx context.Context) (runtime.Connection, error) { return Connect(ctx) },
	Reach:        func(ctx context.Context) (runtime.Connection, error) { return Reach(ctx) },
	Login:        func(h runtime.Host) runtime.Login { return (*Engine)(nil).open(h) },
	Readdress: func(h runtime.Host, session string, to resource.Address) error {
		return (*Engine)(nil).open(h).Readdress(session, to)
	},
}

// Open gives the runtime of a host.
func (e *Engine) Open(h runtime.Host) runtime.Runtime { return e.open(h) }

func (e *Engine) open(h runtime.Host) Runtime {
	h.Folders += folderSuffix
	return Runtime{Engine: e, Sessions: inside.On(h)}
}
