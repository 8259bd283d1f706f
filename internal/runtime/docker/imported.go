package docker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// importedLabels are what cosplay would have written on an imported container. One that was imported with its slice has
// the hash of the session that it was imported for.
func (r Runtime) importedLabels(c resource.Body) map[string]string {
	l := map[string]string{labelLineage: r.Owner.Lineage, labelHost: r.Host.Name, labelSession: c.Session}
	if c.Hash != "" {
		l[labelHash], l[labelSlice] = c.Hash, c.SliceID
	}
	return l
}

// isImported reports whether a container was imported: nothing of cosplay's is in it.
func (r Runtime) isImported(id string) bool {
	return slices.ContainsFunc(r.Owner.Imported, func(c resource.Body) bool { return c.ID == id })
}

// keepsImported reports whether a session has an imported container and the block for which it was imported.
func (r Runtime) keepsImported(s resource.Session) bool {
	return slices.ContainsFunc(r.Owner.Imported, func(c resource.Body) bool {
		return c.Session == s.ID && c.Host == r.Host.Name && c.Hash != "" && s.HasHash(r.Owner.Key, c.Hash)
	})
}

// inspectOwn reads a container of the project; an imported one has its labels from the state.
func (r Runtime) inspectOwn(ctx context.Context, id string) (*container.InspectResponse, error) {
	there, err := r.inspect(ctx, id)
	if err != nil || there == nil {
		return there, err
	}
	for _, c := range r.Owner.Imported {
		if c.ID == there.ID {
			there.Config.Labels = r.importedLabels(c)
		}
	}
	return there, nil
}

// cdiGPU begins the name of NVIDIA's devices in a CDI specification.
const cdiGPU = "nvidia.com/gpu="

// givenDevice is the one GPU that a container was given, by the engine or by NVIDIA's runtime: a UUID or an index; "" if
// it has none, several or all.
func givenDevice(there *container.InspectResponse) string {
	var devices []string
	for _, request := range there.HostConfig.DeviceRequests {
		if request.Count < 0 {
			return ""
		}
		devices = append(devices, request.DeviceIDs...)
	}
	if len(devices) == 0 {
		for _, variable := range there.Config.Env {
			if value, is := strings.CutPrefix(variable, visibleDevices+"="); is {
				devices = strings.Split(value, ",")
			}
		}
	}
	if len(devices) != 1 || slices.Contains([]string{"all", "none", "void"}, devices[0]) {
		return ""
	}
	return strings.TrimPrefix(devices[0], cdiGPU)
}

// plainly makes a program start without cosplay-init, which an imported container does not have: as the user of the
// container or, where that is root by default, as the session's.
func (r Runtime) plainly(there *container.InspectResponse, p runtime.Program, o *container.ExecOptions) {
	o.Cmd, o.WorkingDir = p.Argv, p.Dir
	if len(o.Cmd) == 0 {
		o.Cmd = []string{"/bin/sh", "-c", "command -v bash >/dev/null && exec bash -l; exec sh -l"}
	}
	user := r.Owner.Users[there.ID]
	o.User = cmp.Or(p.User, there.Config.User, fmt.Sprintf("%d:%d", user.UID, user.GID))
}
