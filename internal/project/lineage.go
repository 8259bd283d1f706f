package project

import (
	"context"
	"slices"

	"cosplay/internal/machine"
	"cosplay/internal/resource"
)

// Lineage is what the ledgers know a project as, and what is searched for on the hosts
// without relying on its state. A project whose state was lost may have several.
type Lineage struct {
	Holder resource.Holder
	Dir    string         // the project's folder
	Known  resource.Prior // its state, if that can be read
	Own    bool           // it is of the project that the command is about
	Main   bool           // and the one that the project has now
}

// HostOf is an open host as a lineage has it: with its name for the host, and its folders.
func (p *Project) HostOf(l Lineage, live resource.Live, name string) *machine.Host {
	h := p.Machine.Hosts()[name]
	known := h.Config.Name
	if !l.Own || name == p.Unnamed {
		known = theirName(l.Holder.Lineage, live, name)
	}
	statePath := l.Holder.State
	if l.Own {
		statePath = p.Store.Path // it may have been moved
	}
	return h.As(known, l.Dir, statePath)
}

// theirName is what a project calls a host, as far as its slices show.
func theirName(lineage string, live resource.Live, name string) string {
	host, _ := live.Host(name)
	for _, page := range host.Ledger {
		holder, _ := page.Holder(lineage)
		for _, s := range holder.Slices {
			if s.Host != "" {
				return s.Host
			}
		}
	}
	return name
}

// Remains is what the sessions of a lineage have left on the hosts, proven by a key.
func (p *Project) Remains(ctx context.Context, l Lineage, live resource.Live, key string) (all []resource.Remains, failures []error) {
	owner := resource.Owner{Lineage: l.Holder.Lineage, Key: key}
	for _, host := range live.Hosts {
		found, failed := p.Machine.Remains(ctx, p.HostOf(l, live, host.Name), l.Known, owner, !l.Own || l.Main)
		for i := range found {
			found[i].Container.Host = host.Name
		}
		all, failures = append(all, found...), append(failures, failed...)
	}
	slices.SortFunc(all, func(a, b resource.Remains) int { return a.Container.Compare(b.Container) })
	return all, failures
}
