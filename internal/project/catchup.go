package project

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
)

// catchUp updates a state that is older than the records of its hosts, for example because
// it was restored from a backup. It adds what later runs provably created, and drops what
// they removed. The caller has the lock.
func (p *Project) catchUp(ctx context.Context, old resource.Prior, live resource.Live) (resource.Prior, resource.Live, error) {
	prior, notes, err := p.caughtUp(ctx, old, live)
	if err != nil {
		return old, live, err
	}
	prior.LastRun = prior.Serial + 1
	if prior, err = p.Store.SaveOver(prior, old.Serial); err != nil {
		return old, live, err
	}
	p.Notes = append(p.Notes, resource.Note{Kind: resource.StateOlder, Serial: old.Serial, Added: sessionsBeyond(prior, old),
		Removed: sessionsBeyond(old, prior), Leaves: len(old.GPUs) - len(prior.GPUs)})
	p.Notes = append(p.Notes, notes...)
	live, err = p.observe(ctx, prior)
	return prior, live, err
}

// caughtUp is the state that catchUp would save.
func (p *Project) caughtUp(ctx context.Context, old resource.Prior, live resource.Live) (resource.Prior, []resource.Note, error) {
	if why := p.Foreign(old, live); why != "" {
		return old, nil, fmt.Errorf("the state %s is older than what the hosts have on record, and %s. Use that state, or remove this one", p.Store.Path, why)
	}
	own := Lineage{Holder: p.Holder(old.Lineage), Dir: p.Dir, Known: old, Own: true, Main: true}
	remains, failures := p.Remains(ctx, own, live, old.Key)
	if len(failures) > 0 {
		return old, nil, errors.Join(failures...)
	}
	ahead, certain, doubtful := salvage.Ahead(old, live, remains)
	if len(doubtful) > 0 {
		return old, nil, prose.Advice{What: fmt.Sprintf("the state %s is older than what the hosts have on record, and the container %s has a slice of this project, but nothing proves that the project created the container", p.Store.Path, doubtful[0].Body.ID), Fix: "cosplay state rebuild"}
	}
	prior, notes := salvage.Prior(salvage.Sources{Lineage: old.Lineage, Key: old.Key, Known: old, Live: ahead, Remains: certain})
	return prior, notes, nil
}

// WithReleased adds the GPUs that a state has and that its project has released, as the
// histories of the ledgers record. It distinguishes a state that was restored from a
// backup from one whose host has lost the ledger.
func (l *Fleet) WithReleased(ctx context.Context, prior resource.Prior, live resource.Live) (resource.Live, error) {
	hosts := slices.Clone(live.Hosts)
	for i := range hosts {
		host := &hosts[i]
		missing := slices.DeleteFunc(slices.Clone(prior.GPUs), func(g resource.PriorGPU) bool {
			page, _ := live.Page(g.Host, g.UUID)
			_, holds := page.Holder(prior.Lineage)
			return holds || g.Host != host.Name
		})
		if len(missing) == 0 || host.Unreachable != "" {
			continue
		}
		released, err := l.Machine.Hosts()[host.Name].Agent.Released(ctx, prior.Lineage)
		if err != nil {
			return live, err
		}
		for _, g := range missing {
			if slices.Contains(released, g.UUID) {
				host.Released = append(host.Released, g.UUID)
			}
		}
	}
	return resource.Live{Hosts: hosts}, nil
}

// sessionsBeyond counts the sessions that one state has and another has not.
func sessionsBeyond(one, other resource.Prior) int {
	return len(slices.DeleteFunc(slices.Clone(one.Sessions), func(s resource.PriorSession) bool {
		return slices.ContainsFunc(other.Sessions, func(o resource.PriorSession) bool { return o.ID == s.ID && o.Slice.Host == s.Slice.Host })
	}))
}
