package recovery

import (
	"cmp"
	"errors"
	"slices"

	"cosplay/internal/project"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// StateView is what can be read of a state, and its fault.
type StateView struct {
	Path  string
	There bool
	Fault string // in words; "" without a fault or without a file

	prior   resource.Prior // if it is this project's and undamaged
	words   state.Salvaged
	unclear bool // it cannot be read
}

// Usable reports whether the state can be read and is this project's.
func (v StateView) Usable() bool { return v.There && v.Fault == "" }

// stateView reads as much of the state as possible.
func stateView(p *project.Project, live resource.Live) StateView {
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
		v.There, v.prior = true, renamed(p, prior, live)
		if why := p.Foreign(prior, live); why != "" {
			v.Fault, v.prior = why, resource.Prior{}
		}
	}
	return v
}

// renamed renames a host of the state to this machine if the machine has its GPUs and no
// configuration names a host.
func renamed(p *project.Project, prior resource.Prior, live resource.Live) resource.Prior {
	prior = prior.Clone()
	here := func(host *string, gpu string) {
		_, named := live.Host(*host)
		if _, there := live.GPU(p.Unnamed, gpu); there && !named {
			*host = p.Unnamed
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

// ownHolders are the holders of this project: several if it started with a new state after
// the old one was lost. The last one has the lineage of the state.
func ownHolders(p *project.Project, v StateView, live resource.Live) []resource.Holder {
	var own, elsewhere []resource.Holder
	for _, h := range project.Holders(live) {
		switch {
		case project.At(h, p.Store.Path):
			own = append(own, h)
		case (h.Lineage == v.prior.Lineage || slices.Contains(v.words.Lineages, h.Lineage)) && project.IsLost(h) && project.MayRelease(h) == nil:
			elsewhere = append(elsewhere, h) // the state was moved
		}
	}
	if len(own) == 0 {
		own = elsewhere
	}
	known := func(h resource.Holder) bool { return h.Lineage == v.prior.Lineage }
	if v.Usable() && !slices.ContainsFunc(own, known) {
		own = append(own, p.Holder(v.prior.Lineage))
	}
	slices.SortStableFunc(own, func(a, b resource.Holder) int {
		if known(a) != known(b) {
			return map[bool]int{false: -1, true: 1}[known(a)]
		}
		return cmp.Compare(a.Since, b.Since)
	})
	if len(own) == 0 { // no ledger has it: only containers and folders may remain
		lineage := ""
		if v.unclear || !v.There {
			lineage = cmp.Or(append(slices.Clone(v.words.Lineages), "")...)
		}
		own = []resource.Holder{p.Holder(lineage)}
	}
	return own
}
