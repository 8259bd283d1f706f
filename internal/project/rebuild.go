package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	Notes    []string
}

// Rebuild makes the state anew from ledgers, labels and hardware. The lineage,
// or its beginning, says which project it is where the ledgers leave that open.
func (p *Project) Rebuild(ctx context.Context, lineage string) (*Rebuilt, error) {
	live, failures := p.survey(ctx)
	if len(failures) > 0 {
		return nil, errors.Join(failures...) // half a state would have the rest forgotten
	}
	v := p.stateView(live)
	o, err := p.rebuildParty(v, live, lineage)
	if err != nil {
		return nil, err
	}
	o.known.Forgotten = v.prior.Forgotten
	has, failures := p.recoverParty(ctx, o, live, nil)
	if len(failures) > 0 {
		return nil, errors.Join(failures...)
	}
	if v.Usable() && !salvage.Behind(v.prior, has.live) && !p.strandedJournal(v.prior) {
		return nil, fmt.Errorf("the state %s is whole, up to date and this project's: there is nothing to rebuild. cosplay plan shows what differs from the hosts", v.Path)
	}
	if len(has.prior.GPUs) == 0 && len(has.prior.Sessions) == 0 {
		return nil, fmt.Errorf("no host knows of anything that the project with its state in %s has made: there is nothing to rebuild, and cosplay apply begins anew", v.Path)
	}
	return &Rebuilt{State: v, Holder: o.holder, Prior: has.prior, Live: has.live, Unproven: has.unproven, Notes: has.notes}, nil
}

// strandedJournal reports whether there is a journal that no command can fold into
// the state: a damaged one, or another state's.
func (p *Project) strandedJournal(prior resource.Prior) bool {
	entries, err := p.journal()
	return err != nil || len(entries) > 0 && !continues(entries[0], prior)
}

// rebuildParty settles which project the state is made anew for.
func (p *Project) rebuildParty(v StateView, live resource.Live, lineage string) (party, error) {
	own := p.ownParties(v, live)
	if lineage == "" && len(own) == 1 {
		return own[0], nil
	}
	if lineage == "" {
		var known []string
		for _, o := range own {
			known = append(known, fmt.Sprintf("%s (since %s)", o.holder.Lineage, o.holder.Since))
		}
		return party{}, fmt.Errorf("the GPUs are held for this state under %d lineages: %s. Choose one with --lineage; cosplay reset --holder takes another one away", len(own), strings.Join(known, ", "))
	}
	h, err := pickHolder(holders(live), lineage)
	if err != nil {
		return party{}, err
	}
	if i := slices.IndexFunc(own, func(o party) bool { return o.holder.Lineage == h.Lineage }); i >= 0 {
		own[i].main = true
		return own[i], nil
	}
	if !isGone(h) {
		return party{}, fmt.Errorf("lineage %s is that of a project whose state is in %s; use that one", h.Lineage, h.State)
	}
	if err := mayRelease(h); err != nil {
		return party{}, err
	}
	return party{holder: h, dir: p.Dir, keys: v.words.Keys, own: true, main: true}, nil
}

// WriteRebuilt puts the state in its place, and what was there aside.
func (p *Project) WriteRebuilt(r *Rebuilt) (prior resource.Prior, aside []string, err error) {
	if aside, err = p.Store.SetAside("rebuilt"); err != nil {
		return r.Prior, aside, err
	}
	prior, err = p.write(r.Prior, r.State)
	return prior, aside, err
}
