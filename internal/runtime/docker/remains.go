package docker

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/docker/docker/api/types/container"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Remains lists the containers that say they are of this state and host, proven where its key has sealed them, with
// what their folders and labels tell of their sessions.
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

// identified is the session of a container: as its folder has it, else what the labels have. The address in the
// folder is the newer one: a session can be moved, and the labels of a container cannot be changed.
func (r Runtime) identified(c container.Summary) resource.Session {
	var s, labelled resource.Session
	labelled.ID, labelled.Runtime = c.Labels[labelSession], name
	_ = labelled.Address.UnmarshalText([]byte(c.Labels[labelAddress])) // one that is no address is none
	labelled.Slice.Host, labelled.Slice.GPU = r.Host, c.Labels[labelGPU]
	if runtime.CheckSession(labelled.ID) != nil {
		return labelled
	}
	data, err := os.ReadFile(filepath.Join(r.folder(labelled.ID), sessionFile))
	if err != nil || json.Unmarshal(data, &s) != nil || s.ID != labelled.ID {
		return labelled
	}
	return s
}
