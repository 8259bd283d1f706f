package docker

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"cosplay/internal/disguise"
	"cosplay/internal/disguise/verify"
	"cosplay/internal/inside"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Altered lists what has changed in the session's folder, in the driver behind it and in the container's mounts.
func (r Runtime) Altered(ctx context.Context, s resource.PriorSession) (map[string]string, error) {
	all, err := disguise.Altered(r.Folder(s.ID))
	if err != nil {
		return nil, err
	}
	there, err := r.find(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if there == nil {
		all[verify.MountsCheck] = "there is no container"
		return all, nil
	}
	if wrong := misplaced(there.Mounts, r.neededMounts(s.Session, there)); len(wrong) > 0 {
		all[verify.MountsCheck] = strings.Join(wrong, "; ")
	}
	return all, nil
}

// neededMounts are the mounts that the disguise and the user's work need.
func (r Runtime) neededMounts(s resource.Session, there *container.InspectResponse) []mount.Mount {
	cuda, report := counts(there), inside.InContainer(disguise.ReportFile)
	all := r.mounts(s, cuda)
	if !mounts(there, report) { // a container of an older cosplay goes on without a report
		all = slices.DeleteFunc(all, func(m mount.Mount) bool { return m.Target == report })
	}
	if way := r.access().way; way != byMount && way != byHook {
		return all // the engine does not list the mounts of a device
	}
	return append(all, prose.Each(r.Facades(s.ID, cuda), bind)...)
}

// misplaced lists the mounts that a container lacks or that differ.
func misplaced(there []container.MountPoint, wanted []mount.Mount) []string {
	has := map[string]container.MountPoint{}
	for _, m := range there {
		has[m.Destination] = m
	}
	var wrong []string
	for _, w := range wanted {
		m, is := has[w.Target]
		switch {
		case w.Type != mount.TypeBind:
		case is && m.Type == mount.TypeTmpfs && filepath.Base(w.Source) == inside.EmptyDir:
			// A container of an older cosplay: Docker keeps it empty, and podman lists no tmpfs.
		case !is:
			wrong = append(wrong, w.Target+" is not mounted")
		case m.Source != w.Source:
			wrong = append(wrong, w.Target+" comes from "+m.Source)
		case m.RW && w.ReadOnly:
			wrong = append(wrong, w.Target+" can be written to")
		case !m.RW && !w.ReadOnly:
			wrong = append(wrong, w.Target+" cannot be written to")
		}
	}
	return wrong
}
