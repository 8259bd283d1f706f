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
)

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
	entries, err := os.ReadDir(r.Base)
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
	survey, err := r.survey(ctx)
	if err != nil {
		return nil, err
	}
	var all []resource.Body
	for _, e := range entries {
		if !slices.ContainsFunc(survey.containers, func(c container.Summary) bool { return r.uses(c, e.Name()) }) {
			all = append(all, resource.Body{Session: e.Name(), Host: r.Host, Runtime: name, State: resource.Stopped})
		}
	}
	return all, nil
}

// furnishes reports whether a container has the session's folder of this state.
func (r Runtime) furnishes(there *container.InspectResponse, session string) bool {
	return slices.ContainsFunc(there.Mounts, func(m container.MountPoint) bool {
		return m.Destination == initd.Dir && filepath.Clean(m.Source) == r.inside(session)
	})
}

// uses reports whether a container mounts anything of a session's folder.
func (r Runtime) uses(c container.Summary, session string) bool {
	return slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return holds(r.folder(session), m.Source) })
}
