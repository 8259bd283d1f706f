package recovery

import (
	"cmp"
	"errors"
	"slices"

	"cosplay/internal/project"
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

// renamed gives the machine that no configuration names the name that the state
// has for it, by its GPUs.
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

// ownHolders are the holders that this project is known as: more than one, where
// it was begun anew after its state was lost. The last is the one of the state.
func ownHolders(p *project.Project, v StateView, live resource.Live) []resource.Holder {
	var own, elsewhere []resource.Holder
	for _, h := range project.Holders(live) {
		switch {
		case project.At(h, p.Store.Path):
			own = append(own, h)
		case (h.Lineage == v.prior.Lineage || slices.Contains(v.words.Lineages, h.Lineage)) && project.IsGone(h) && project.MayRelease(h) == nil:
			elsewhere = append(elsewhere, h) // it was moved
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
	if len(own) == 0 { // nobody's ledger knows it: what is left are containers and folders
		lineage := ""
		if v.unclear || !v.There {
			lineage = cmp.Or(append(slices.Clone(v.words.Lineages), "")...)
		}
		own = []resource.Holder{p.Holder(lineage)}
	}
	return own
}
