package recovery

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
	"cosplay/internal/state"
)

// claim is a lineage of a project, with the keys that may prove its containers.
type claim struct {
	project.Lineage
	keys        []string // candidates for the key of its state
	interrupted bool     // a run of it was interrupted
}

// ownClaims are the lineages of the project in the ledgers; the last one is the main one.
func ownClaims(p *project.Project, v StateView, live resource.Live) []claim {
	var all []claim
	for _, h := range ownHolders(p, v, live) {
		one := claim{Lineage: project.Lineage{Holder: h, Dir: p.Dir, Own: true}, keys: v.words.Keys, interrupted: p.Unfinished()}
		switch {
		case h.Lineage == v.prior.Lineage:
			one.Known, one.keys = v.prior, []string{v.prior.Key}
		case v.There && !v.unclear: // another project's state; its key counts only if it proves a container
			one.keys = append([]string{state.NewKey()}, one.keys...)
		}
		one.Known.Forgotten = nil // a reset also removes what state rm gave up
		all = append(all, one)
	}
	all[len(all)-1].Main = true
	return all
}

// otherClaim is the claim of another project, with its state if that exists.
func otherClaim(h resource.Holder) claim {
	store := state.Store{Path: h.State}
	one := claim{Lineage: project.Lineage{Holder: h, Dir: filepath.Dir(h.State)}, keys: store.Salvage().Keys}
	if dir, once := project.FolderOfRun(h.State); once {
		one.Dir = dir
	}
	if prior, err := store.Load(); err == nil && prior.Lineage == h.Lineage {
		one.Known, one.keys = prior, []string{prior.Key}
		one.Known.Forgotten = nil
	}
	_, err := os.Stat(store.JournalPath())
	one.interrupted = err == nil
	return one
}

// Recovered is the state of a lineage that recovery put together, and the hosts with its
// containers.
type Recovered struct {
	Prior    resource.Prior
	Live     resource.Live
	Unproven []resource.Body // only their labels name the lineage: the next apply replaces them
	Notes    []resource.Note
}

// recoverClaim puts together the objects of a lineage. A container that no key proves
// counts only with the user's consent: agreed names the containers to which the user has
// agreed, and the result lists the others as unproven.
func recoverClaim(ctx context.Context, p *project.Project, o claim, live resource.Live, agreed []string) (Recovered, []error) {
	remains, key, failures := remains(ctx, p, o, live)
	live, err := p.WithReleased(ctx, o.Known, live)
	if err != nil {
		failures = append(failures, err)
	}
	var r Recovered
	own := bodies(o.Known)
	remains = slices.DeleteFunc(remains, func(one resource.Remains) bool {
		id := one.Body.ID
		switch {
		case one.Proven, own[id]:
			return false
		case agreed != nil && !slices.Contains(agreed, id):
			return true
		}
		r.Unproven = append(r.Unproven, one.Body)
		return false
	})
	r.Prior, r.Notes = salvage.Prior(salvage.Sources{Lineage: o.Holder.Lineage, Key: key, Known: o.Known, Live: live, Remains: remains, Interrupted: o.interrupted})
	r.Live = withContainers(live, remains)
	return r, failures
}

// bodies are those of the sessions of a state, by ID.
func bodies(prior resource.Prior) map[string]bool {
	all := map[string]bool{}
	for _, id := range prior.Owner().Bodies {
		all[id] = true
	}
	return all
}

// remains lists the objects of a lineage in all runtimes of all hosts, and chooses the key
// that proves most of them.
func remains(ctx context.Context, p *project.Project, o claim, live resource.Live) (all []resource.Remains, key string, failures []error) {
	best := -1
	for _, candidate := range append(slices.Clone(o.keys), state.NewKey()) { // a new one proves nothing
		found, failed := p.Remains(ctx, o.Lineage, live, candidate)
		proven := len(prose.Only(found, func(one resource.Remains) bool { return one.Proven }))
		if proven > best {
			best, all, key, failures = proven, found, candidate, failed
		}
	}
	return all, key, failures
}

// withContainers is the snapshot with the bodies of one lineage.
func withContainers(live resource.Live, remains []resource.Remains) resource.Live {
	hosts := slices.Clone(live.Hosts)
	for i := range hosts {
		here := prose.Only(remains, func(one resource.Remains) bool { return one.Body.Host == hosts[i].Name })
		hosts[i].Bodies = prose.Each(here, func(one resource.Remains) resource.Body { return one.Body })
		slices.SortFunc(hosts[i].Bodies, resource.Body.Compare)
	}
	return resource.Live{Hosts: hosts}
}

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
	refusal, is := errors.AsType[*state.Refusal](err)
	switch {
	case is:
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
		s := &prior.Sessions[i]
		here(&s.Slice.Host, s.Slice.GPU)
		s.More = slices.Clone(s.More)
		for m := range s.More {
			here(&s.More[m].Host, s.More[m].GPU)
		}
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
