package docker

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Remains lists the containers whose labels name this state and host, proven if its key has sealed the labels, with
// what their folders and labels record of their sessions.
func (r Runtime) Remains(ctx context.Context) ([]resource.Remains, error) {
	found, err := r.claimed(ctx)
	if err != nil {
		return nil, err
	}
	var all []resource.Remains
	for _, f := range found {
		c := r.container(f.ID, f.ImageID, f.State, f.Labels)
		if there, err := r.inspect(ctx, c.ID); err != nil {
			return nil, err
		} else if there != nil {
			c.SSHPort = publishedPort(there)
		}
		session := r.identified(f)
		if !session.Spec.IsZero() && session.Spec.SSH.Port == 0 {
			session.Spec.SSH.Kept = c.SSHPort
		}
		all = append(all, resource.Remains{Session: session, Body: c, Proven: r.sealed(f)})
	}
	return all, nil
}

// identified is the session of a container: as its folder has it, else as the labels have it. The address in the
// folder is newer: a session can be moved, and the labels of a container cannot be changed.
func (r Runtime) identified(c container.Summary) resource.Session {
	var labelled resource.Session
	labelled.ID, labelled.Runtime = c.Labels[labelSession], name
	_ = labelled.Address.UnmarshalText([]byte(c.Labels[labelAddress])) // an invalid address is none
	labelled.Slice.Host, labelled.Slice.GPU = r.Host.Name, c.Labels[labelGPU]
	if runtime.CheckSession(labelled.ID) != nil {
		return labelled
	}
	if s, found, _ := r.Recorded(labelled.ID); found {
		return s
	}
	return labelled
}

// Leftovers are what interrupted runs have left of sessions that the state does not know: containers of the project
// that never ran, since an engine may finish creating a container after its run has ended, and folders of sessions
// without a container.
func (r Runtime) Leftovers(ctx context.Context, listed []resource.Body, known []string) ([]resource.Body, error) {
	var all []resource.Body
	for _, c := range listed {
		if c.Runtime != name || slices.Contains(known, c.Session) {
			continue
		}
		there, err := r.inspect(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		if there != nil && there.State.Status == container.StateCreated && r.furnishes(there, c.Session) {
			all = append(all, c)
		}
	}
	folders, err := r.abandoned(ctx, known)
	return append(all, folders...), err
}

// abandoned are the session folders that the state does not know and that no container has, of any owner.
func (r Runtime) abandoned(ctx context.Context, known []string) ([]resource.Body, error) {
	entries, err := os.ReadDir(r.Folders)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), ".") || slices.Contains(known, e.Name())
	})
	if len(entries) == 0 {
		return nil, nil
	}
	others, err := r.Engine.containers(ctx, "listing the containers")
	if err != nil {
		return nil, err
	}
	var all []resource.Body
	for _, e := range entries {
		mounted := func(m container.MountPoint) bool { return holds(r.Folder(e.Name()), m.Source) }
		if !slices.ContainsFunc(others, func(c container.Summary) bool { return slices.ContainsFunc(c.Mounts, mounted) }) {
			all = append(all, resource.Body{Session: e.Name(), Host: r.Host.Name, Runtime: name, State: resource.Stopped})
		}
	}
	return all, nil
}

// furnishes reports whether a container has the session's folder of this state.
func (r Runtime) furnishes(there *container.InspectResponse, session string) bool {
	return slices.ContainsFunc(there.Mounts, func(m container.MountPoint) bool {
		return m.Destination == initd.Dir && filepath.Clean(m.Source) == r.Inside(session)
	})
}
