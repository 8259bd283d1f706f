package project

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cosplay/internal/resource"
	"cosplay/internal/salvage"
)

// catchUp brings a state up to date that is older than what its hosts have on
// record, as one that was restored from a backup: it takes up what later runs have
// provably created. The caller has the lock.
func (p *Project) catchUp(ctx context.Context, old resource.Prior, live resource.Live) (resource.Prior, resource.Live, error) {
	prior, notes, err := p.caughtUp(ctx, old, live)
	if err != nil {
		return old, live, err
	}
	prior.LastRun = prior.Serial + 1
	if prior, err = p.Store.SaveOver(prior, old.Serial); err != nil {
		return old, live, err
	}
	p.Notes = append(p.Notes, fmt.Sprintf("the state had serial %d and is older than what the hosts have on record of this project (serial %d): %s", old.Serial, prior.Serial-1, gained(old, prior)))
	p.Notes = append(p.Notes, notes...)
	live, err = p.observe(ctx, prior)
	return prior, live, err
}

// caughtUp is the state as catchUp leaves it, with nothing written.
func (p *Project) caughtUp(ctx context.Context, old resource.Prior, live resource.Live) (resource.Prior, []string, error) {
	if why := p.foreign(old, live); why != "" {
		return old, nil, fmt.Errorf("the state %s is older than what the hosts have on record, and %s. Use that state, or remove this one", p.Store.Path, why)
	}
	o := party{holder: p.holder(old.Lineage), dir: p.Dir, known: old, keys: []string{old.Key}, own: true, main: true}
	remains, failures := p.remainsWith(ctx, o, live, old.Key)
	if len(failures) > 0 {
		return old, nil, errors.Join(failures...)
	}
	ahead, certain, doubtful := salvage.Ahead(old, live, remains)
	if len(doubtful) > 0 {
		return old, nil, fmt.Errorf("the state %s is older than what the hosts have on record, and the container %s has a slice of this project, but nothing proves that the project created the container. Fix: cosplay state rebuild", p.Store.Path, doubtful[0].Container.ID)
	}
	prior, notes := salvage.Prior(salvage.Sources{Lineage: old.Lineage, Key: old.Key, Known: old, Live: ahead, Remains: certain})
	return prior, notes, nil
}

// gained says what a state has that it lacked before.
func gained(old, now resource.Prior) string {
	count := 0
	for _, s := range now.Sessions {
		known := slices.ContainsFunc(old.Sessions, func(o resource.PriorSession) bool { return o.ID == s.ID && o.Slice.Host == s.Slice.Host })
		if !known {
			count++
		}
	}
	switch count {
	case 0:
		return "it was brought up to date"
	case 1:
		return "1 session was added to it"
	}
	return fmt.Sprintf("%d sessions were added to it", count)
}
