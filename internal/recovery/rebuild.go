package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/project"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
)

// Rebuilt is a state that was made anew, and not yet written.
type Rebuilt struct {
	State    StateView
	Holder   resource.Holder
	Prior    resource.Prior
	Live     resource.Live
	Unproven []resource.Container // which only labels say are its own: the next apply replaces them
	Notes    []resource.Note
}

// Rebuild makes the state anew from ledgers, labels and hardware. The lineage,
// or its beginning, says which project it is where the ledgers leave that open.
func Rebuild(ctx context.Context, p *project.Project, lineage string) (*Rebuilt, error) {
	live, failures := p.Survey(ctx)
	if len(failures) > 0 {
		return nil, errors.Join(failures...) // half a state would have the rest forgotten
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
	if v.Usable() && !salvage.Behind(v.prior, has.live) && !p.StrandedJournal(v.prior) {
		return nil, fmt.Errorf("the state %s is whole, up to date and this project's: there is nothing to rebuild. cosplay plan shows what differs from the hosts", v.Path)
	}
	if len(has.prior.GPUs) == 0 && len(has.prior.Sessions) == 0 {
		return nil, fmt.Errorf("no host knows of anything that the project with its state in %s has made: there is nothing to rebuild, and cosplay apply begins anew", v.Path)
	}
	return &Rebuilt{State: v, Holder: o.Holder, Prior: has.prior, Live: has.live, Unproven: has.unproven, Notes: has.notes}, nil
}

// claimToRebuild settles which project the state is made anew for.
func claimToRebuild(p *project.Project, v StateView, live resource.Live, lineage string) (claim, error) {
	own := ownClaims(p, v, live)
	if lineage == "" && len(own) == 1 {
		return own[0], nil
	}
	if lineage == "" {
		var known []string
		for _, o := range own {
			known = append(known, fmt.Sprintf("%s (since %s)", o.Holder.Lineage, o.Holder.Since))
		}
		return claim{}, fmt.Errorf("the GPUs are held for this state under %d lineages: %s. Choose one with --lineage; cosplay reset --holder takes another one away", len(own), strings.Join(known, ", "))
	}
	h, err := pickHolder(project.Holders(live), lineage)
	if err != nil {
		return claim{}, err
	}
	if i := slices.IndexFunc(own, func(o claim) bool { return o.Holder.Lineage == h.Lineage }); i >= 0 {
		own[i].Main = true
		return own[i], nil
	}
	if !project.IsGone(h) {
		return claim{}, fmt.Errorf("lineage %s is that of a project whose state is in %s; use that one", h.Lineage, h.State)
	}
	if err := project.MayRelease(h); err != nil {
		return claim{}, err
	}
	return claim{Lineage: project.Lineage{Holder: h, Dir: p.Dir, Own: true, Main: true}, keys: v.words.Keys}, nil
}

// WriteRebuilt puts the state in its place, and what was there aside.
func WriteRebuilt(p *project.Project, r *Rebuilt) (prior resource.Prior, aside []string, err error) {
	if aside, err = p.Store.SetAside("rebuilt"); err != nil {
		return r.Prior, aside, err
	}
	prior, err = write(p, r.Prior, r.State)
	return prior, aside, err
}
