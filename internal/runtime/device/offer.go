package device

import (
	"errors"

	"cosplay/internal/cdi"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Offer is what the device of a session gives a container.
func (r Runtime) Offer(session string) (o resource.Offer, err error) {
	was, found := r.recorded(session)
	if !found {
		return o, errors.New("its session folder has no device. Fix: cosplay apply writes it again")
	}
	edits, err := cdi.Parse([]byte(was.Specification))
	files := func(all []cdi.File) []resource.Mount {
		return prose.Each(all, func(f cdi.File) resource.Mount { return resource.Mount(f) })
	}
	return resource.Offer{Device: Of(session).Qualified(), Specification: Of(session).File(r.Specs), Env: edits.Env,
		Nodes: files(edits.Nodes), Mounts: files(edits.Mounts)}, err
}
