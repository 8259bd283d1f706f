// Package docker runs sessions in Docker containers: any image, with
// cosplay-init as its first program, the session's slice and the disguise in it.
// A container is known as ours by its name and a seal that only the owner of the
// state can make; nothing else is ever touched.
package docker

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/runtime/docker/image"
)

// Labels of our containers.
const (
	labelLineage = "cosplay.lineage"
	labelHost    = "cosplay.host"
	labelSession = "cosplay.session" // the session's ID
	labelAddress = "cosplay.address"
	labelHash    = "cosplay.hash"
	labelGPU     = "cosplay.gpu"   // UUID
	labelSlice   = "cosplay.slice" // UUID of the MIG slice or of the whole GPU
	labelSeal    = "cosplay.seal"
)

// Runtime keeps the containers of one state on one host.
type Runtime struct {
	Engine  *Engine
	Base    string         // the folder that holds the session folders of this state and host
	Host    string         // its name in the configuration
	Owner   resource.Owner // whose containers these are
	Library string         // absolute path of the host's NVML library; "" is the system's
	SimDir  string         // the folder of a simulated host, its library and state in it; "" for hardware
}

// Name is what the container of a session is called.
func Name(session string) string { return "cosplay-" + session }

// mac is what only the owner of the state can make out of some words.
func (r Runtime) mac(words ...string) []byte {
	content, err := json.Marshal(words)
	if err != nil {
		panic(err) // strings only: it cannot fail
	}
	sum := hmac.New(sha256.New, []byte(r.Owner.Key))
	sum.Write(content)
	return sum.Sum(nil)
}

func (r Runtime) labels(s resource.Session, slice string) map[string]string {
	l := map[string]string{
		labelLineage: r.Owner.Lineage,
		labelHost:    r.Host,
		labelSession: s.ID,
		labelAddress: s.Address.String(),
		labelHash:    s.Hash(r.Owner.Key),
		labelGPU:     s.Slice.GPU,
		labelSlice:   slice,
	}
	l[labelSeal] = r.seal(l)
	return l
}

func (r Runtime) seal(l map[string]string) string {
	return hex.EncodeToString(r.mac("seal", l[labelLineage], l[labelHost], l[labelSession], l[labelHash], l[labelSlice]))
}

// ours tells whether a container is one of this state and host: labels can be
// copied and made up, so its name and its seal must agree with them.
func (r Runtime) ours(name string, l map[string]string) bool {
	return r.Owner.Lineage != "" && l[labelLineage] == r.Owner.Lineage && l[labelHost] == r.Host &&
		strings.TrimPrefix(name, "/") == Name(l[labelSession]) && hmac.Equal([]byte(l[labelSeal]), []byte(r.seal(l)))
}

// List tells which sessions have a container, whatever its state.
func (r Runtime) List(ctx context.Context) ([]resource.Container, error) {
	if r.Owner.Lineage == "" {
		if _, err := r.Engine.client.Ping(ctx); err != nil {
			return nil, explain("asking the Docker engine", err, subject{})
		}
		return nil, nil
	}
	found, err := r.Engine.client.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(
		filters.Arg("label", labelLineage+"="+r.Owner.Lineage), filters.Arg("label", labelHost+"="+r.Host))})
	if err != nil {
		return nil, explain("listing the sessions' containers", err, subject{})
	}
	var all []resource.Container
	for _, f := range found {
		if len(f.Names) == 0 || !r.ours(f.Names[0], f.Labels) {
			continue
		}
		c := r.container(f.ID, f.ImageID, f.State, f.Labels)
		for _, port := range f.Ports {
			if port.Type == "tcp" && port.PrivatePort == sshPort {
				c.SSHPort = int(port.PublicPort)
			}
		}
		if c.State != resource.Running { // a list tells the ports only of what runs
			there, err := r.inspect(ctx, c.Session)
			if err != nil {
				return nil, err
			}
			if there == nil || there.ID != c.ID {
				continue // gone in between
			}
			c.SSHPort = publishedPort(there)
		}
		all = append(all, c)
	}
	return all, nil
}

func (r Runtime) container(id, image string, state container.ContainerState, l map[string]string) resource.Container {
	c := resource.Container{ID: id, Image: image, Session: l[labelSession], Host: r.Host, Runtime: resource.RuntimeDocker,
		State: resource.Stopped, Hash: l[labelHash], SliceID: l[labelSlice]}
	if state == container.StateRunning {
		c.State = resource.Running
	}
	return c
}

// inspect looks at whatever bears the name of a session's container; nil is
// nothing.
func (r Runtime) inspect(ctx context.Context, session string) (*container.InspectResponse, error) {
	there, err := r.Engine.client.ContainerInspect(ctx, Name(session))
	switch {
	case errdefs.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, explain("looking at the container "+Name(session), err, subject{name: Name(session)})
	case strings.TrimPrefix(there.Name, "/") != Name(session): // the engine also takes the beginning of an ID
		return nil, nil
	}
	return &there, nil
}

func (r Runtime) owns(there *container.InspectResponse) bool {
	return r.ours(there.Name, there.Config.Labels)
}

// inhabited is the container of a session that somebody wants to go into.
func (r Runtime) inhabited(ctx context.Context, session string) (*container.InspectResponse, error) {
	if err := checkID(session); err != nil {
		return nil, err
	}
	there, err := r.inspect(ctx, session)
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		return nil, fmt.Errorf("its container %s is gone; cosplay apply makes it anew", Name(session))
	case !r.owns(there):
		return nil, notOurs(there)
	}
	return there, nil
}

// Look tells what the engine is, how slices come into its containers, and which
// images it has.
func (r Runtime) Look(ctx context.Context) (resource.Engine, error) {
	images, err := image.Tags(ctx, r.Engine.client)
	if err != nil {
		return resource.Engine{}, explain("asking the Docker engine", err, subject{})
	}
	return resource.Engine{Name: r.Engine.Name(), Access: r.access().words, Images: images}, nil
}

// Ensure pulls an image, or builds cosplay's own.
func (r Runtime) Ensure(ctx context.Context, name string, how plan.ImageSource, say func(string)) error {
	if how == plan.BuildImage {
		return image.Build(ctx, r.Engine.client, image.BuildOptions{Tag: name}, say)
	}
	return image.Pull(ctx, r.Engine.client, name, say)
}

func checkID(session string) error {
	if session == "." || session != filepath.Base(session) || !filepath.IsLocal(session) {
		return fmt.Errorf("%q is not the id of a session", session)
	}
	return nil
}
