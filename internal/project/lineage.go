package project

import (
	"context"
	"slices"

	"cosplay/internal/machine"
	"cosplay/internal/resource"
)

// Lineage is an identity of a project in the ledgers. Recovery searches the hosts by it
// and does not rely on the state. A project whose state was lost may have several.
type Lineage struct {
	Holder resource.Holder
	Dir    string         // the project's folder
	Known  resource.Prior // its state, if that can be read
	Own    bool           // it belongs to the project of the command
	Main   bool           // it is the project's present lineage
}

// HostOf is an open host with the name and the folders that a lineage has for it.
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

// theirName is a project's name of a host, as far as its slices show it.
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

// Remains are the objects of a lineage's sessions on the hosts, with what a key proves.
func (p *Project) Remains(ctx context.Context, l Lineage, live resource.Live, key string) (all []resource.Remains, failures []error) {
	owner := resource.Owner{Lineage: l.Holder.Lineage, Key: key}
	for _, host := range live.Hosts {
		found, failed := p.Machine.Remains(ctx, p.HostOf(l, live, host.Name), l.Known, owner, !l.Own || l.Main)
		for i := range found {
			found[i].Body.Host = host.Name
		}
		all, failures = append(all, found...), append(failures, failed...)
	}
	slices.SortFunc(all, func(a, b resource.Remains) int { return a.Body.Compare(b.Body) })
	return all, failures
}
