package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
)

// Rebuilt is a rebuilt state that is not written yet.
type Rebuilt struct {
	Recovered
	State  StateView
	Holder resource.Holder
}

// Rebuild computes a lost state from ledgers, labels and hardware. The lineage, or its
// first characters, selects the project if the ledgers have several for this path.
func Rebuild(ctx context.Context, p *project.Project, lineage string) (*Rebuilt, error) {
	live, failures := p.ReadHosts(ctx)
	if len(failures) > 0 {
		return nil, errors.Join(failures...) // with a partial state, cosplay would lose the rest
	}
	v := stateView(p, live)
	o, err := claimToRebuild(p, v, live, lineage)
	if err != nil {
		return nil, err
	}
	o.Known.Forgotten = v.prior.Forgotten
	has, failures := recoverClaim(ctx, p, o, live, nil)
	if len(failures) > 0 {
		return nil, errors.Join(failures...)
	}
	if v.Usable() && !salvage.Behind(v.prior, has.Live) && !p.StrandedJournal(v.prior) {
		return nil, fmt.Errorf("the state %s is undamaged, up to date and this project's: there is nothing to rebuild. cosplay plan shows how the hosts differ from it", v.Path)
	}
	if len(has.Prior.GPUs) == 0 && len(has.Prior.Sessions) == 0 {
		return nil, fmt.Errorf("no host has an object of the project with the state %s: there is nothing to rebuild. cosplay apply starts with a new state", v.Path)
	}
	return &Rebuilt{Recovered: has, State: v, Holder: o.Holder}, nil
}

// claimToRebuild chooses the project whose state is rebuilt.
func claimToRebuild(p *project.Project, v StateView, live resource.Live, lineage string) (claim, error) {
	own := ownClaims(p, v, live)
	if lineage == "" && len(own) == 1 {
		return own[0], nil
	}
	if lineage == "" {
		known := prose.Each(own, func(o claim) string { return fmt.Sprintf("%s (since %s)", o.Holder.Lineage, o.Holder.Since) })
		return claim{}, fmt.Errorf("the ledgers have %d lineages for this state: %s. Choose one with --lineage; cosplay reset --holder removes another one", len(own), strings.Join(known, ", "))
	}
	h, err := pickHolder(project.Holders(live), lineage)
	if err != nil {
		return claim{}, err
	}
	if i := slices.IndexFunc(own, func(o claim) bool { return o.Holder.Lineage == h.Lineage }); i >= 0 {
		own[i].Main = true
		return own[i], nil
	}
	if !project.IsLost(h) {
		return claim{}, fmt.Errorf("lineage %s belongs to the project with the state %s. Fix: use that state", h.Lineage, h.State)
	}
	if err := project.MayRelease(h); err != nil {
		return claim{}, err
	}
	return claim{Lineage: project.Lineage{Holder: h, Dir: p.Dir, Own: true, Main: true}, keys: v.words.Keys}, nil
}

// WriteRebuilt writes the state, and moves an existing file aside.
func WriteRebuilt(p *project.Project, r *Rebuilt) (prior resource.Prior, aside []string, err error) {
	if aside, err = p.Store.SetAside("rebuilt"); err != nil {
		return r.Prior, aside, err
	}
	prior, err = write(p, r.Prior, r.State)
	return prior, aside, err
}
