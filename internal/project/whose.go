package project

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// StateView is what is left of a state, and what is wrong with it.
type StateView struct {
	Path  string
	There bool
	Fault string // in words; "" where nothing is wrong, or no file is there

	prior   resource.Prior // where it is this project's and whole
	words   state.Salvaged
	unclear bool // it cannot be read
}

// Usable reports whether it can be read and is this project's.
func (v StateView) Usable() bool { return v.There && v.Fault == "" }

// stateView looks at the state without needing anything of it.
func (p *Project) stateView(live resource.Live) StateView {
	v := StateView{Path: p.Store.Path, words: p.Store.Salvage()}
	prior, err := p.Store.Load()
	var refusal *state.Refusal
	switch {
	case errors.As(err, &refusal):
		v.There, v.Fault, v.unclear = true, refusal.What, true
	case err != nil:
		v.There, v.Fault, v.unclear = true, err.Error(), true
	case prior.Lineage == "":
	default:
		v.There, v.prior = true, p.renamed(prior, live)
		if why := p.foreign(prior, live); why != "" {
			v.Fault, v.prior = why, resource.Prior{}
		}
	}
	return v
}

// renamed gives the machine that no configuration names the name that the state
// has for it, by its GPUs.
func (p *Project) renamed(prior resource.Prior, live resource.Live) resource.Prior {
	prior = prior.Clone()
	here := func(host *string, gpu string) {
		_, named := live.Host(*host)
		if _, there := live.GPU(p.unnamed, gpu); there && !named {
			*host = p.unnamed
		}
	}
	for i := range prior.GPUs {
		here(&prior.GPUs[i].Host, prior.GPUs[i].UUID)
	}
	for i := range prior.Sessions {
		here(&prior.Sessions[i].Slice.Host, prior.Sessions[i].Slice.GPU)
	}
	return prior
}

// foreign says why a state that can be read is not this project's; "" if it is.
func (p *Project) foreign(prior resource.Prior, live resource.Live) string {
	var here []string
	for _, h := range holders(live) {
		switch {
		case at(h, p.Store.Path):
			here = append(here, h.Lineage)
		case h.Lineage == prior.Lineage && (!isGone(h) || mayRelease(h) != nil):
			return fmt.Sprintf("it is a copy of another project's, whose own is in %s", h.State)
		}
	}
	if len(here) > 0 && !slices.Contains(here, prior.Lineage) {
		return fmt.Sprintf("it belongs to another project: its lineage is %s, but the GPUs are held for %s", prior.Lineage, here[0])
	}
	return ""
}

// RefuseCopy refuses a copy of a state: the ledgers name the original, which still
// exists. Of two states of a lineage each would remove what the other has.
func (p *Project) RefuseCopy(prior resource.Prior) error {
	original := ""
	for _, c := range p.Intent.Hosts {
		book := p.book(c)
		if book.Dir == "" {
			continue // a host of which nothing may be changed
		}
		pages, err := book.Read()
		if err != nil {
			return err
		}
		for _, page := range pages {
			h, holds := page.Holder(prior.Lineage)
			switch {
			case !holds:
			case at(h, p.Store.Path):
				return nil
			case isOriginal(h, p.Store.Path):
				original = h.State
			}
		}
	}
	if original == "" {
		return nil
	}
	return fmt.Errorf("the state %s is a copy of another project's, whose own is in %s. Use that state, or remove this one", p.Store.Path, original)
}

// isOriginal reports whether a holder's state exists, beside another file with the same
// lineage. One file under two paths, as in a container, is no copy.
func isOriginal(h resource.Holder, path string) bool {
	theirs, err := os.Stat(h.State)
	if err != nil {
		return false
	}
	if ours, err := os.Stat(path); err != nil || os.SameFile(ours, theirs) {
		return false
	}
	prior, err := state.Store{Path: h.State}.Load()
	return err == nil && prior.Lineage == h.Lineage
}

// ownHolders are the holders that this project is known as: more than one, where
// it was begun anew after its state was lost. The last is the one of the state.
func (p *Project) ownHolders(v StateView, live resource.Live) []resource.Holder {
	var own, elsewhere []resource.Holder
	for _, h := range holders(live) {
		switch {
		case at(h, p.Store.Path):
			own = append(own, h)
		case (h.Lineage == v.prior.Lineage || slices.Contains(v.words.Lineages, h.Lineage)) && isGone(h) && mayRelease(h) == nil:
			elsewhere = append(elsewhere, h) // it was moved
		}
	}
	if len(own) == 0 {
		own = elsewhere
	}
	known := func(h resource.Holder) bool { return h.Lineage == v.prior.Lineage }
	if v.Usable() && !slices.ContainsFunc(own, known) {
		own = append(own, p.holder(v.prior.Lineage))
	}
	slices.SortStableFunc(own, func(a, b resource.Holder) int {
		if known(a) != known(b) {
			return map[bool]int{false: -1, true: 1}[known(a)]
		}
		return cmp.Compare(a.Since, b.Since)
	})
	if len(own) == 0 { // nobody's ledger knows it: what is left are containers and folders
		lineage := ""
		if v.unclear || !v.There {
			lineage = cmp.Or(append(slices.Clone(v.words.Lineages), "")...)
		}
		own = []resource.Holder{p.holder(lineage)}
	}
	return own
}

// holder is this project, as the ledgers are told of it.
func (p *Project) holder(lineage string) resource.Holder {
	return resource.Holder{Lineage: lineage, State: p.Store.Path, User: userName(), UID: userID(), Since: time.Now().UTC().Format(time.RFC3339)}
}
