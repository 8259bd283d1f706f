package recovery

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"cosplay/internal/apply"
	"cosplay/internal/project"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
	"cosplay/internal/state"
)

// claim is a lineage of a project, with what may prove which containers are its own.
type claim struct {
	project.Lineage
	keys   []string // that may be its state's
	cutOff bool     // a run of it was interrupted
}

// ownClaims are those that the ledgers know the project as; the last is the main one.
func ownClaims(p *project.Project, v StateView, live resource.Live) []claim {
	var all []claim
	for _, h := range ownHolders(p, v, live) {
		one := claim{Lineage: project.Lineage{Holder: h, Dir: p.Dir, Own: true}, keys: v.words.Keys, cutOff: p.Unfinished()}
		switch {
		case h.Lineage == v.prior.Lineage:
			one.Known, one.keys = v.prior, []string{v.prior.Key}
		case v.There && !v.unclear: // another project's, whose key is only ours if it proves something
			one.keys = append([]string{state.NewKey()}, one.keys...)
		}
		one.Known.Forgotten = nil // what was given up was this project's all the same
		all = append(all, one)
	}
	all[len(all)-1].Main = true
	return all
}

// otherClaim is that of another project, with what its state says if that exists.
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
	one.cutOff = err == nil
	return one
}

// recovered is what a lineage has, put together, beside the hosts with its
// containers.
type recovered struct {
	prior    resource.Prior
	live     resource.Live
	unproven []resource.Container // claimed by labels alone
	notes    []resource.Note
}

// recover puts together what a lineage has. Containers that nothing proves to be
// its own count as its own only with a person's consent, which they wait for;
// once it was asked for, agreed names those that it was given for.
func recoverClaim(ctx context.Context, p *project.Project, o claim, live resource.Live, agreed []string) (recovered, []error) {
	remains, key, failures := remains(ctx, p, o, live)
	live, err := p.WithReleased(o.Known, live)
	if err != nil {
		failures = append(failures, err)
	}
	var r recovered
	remains = slices.DeleteFunc(remains, func(one resource.Remains) bool {
		id := one.Container.ID
		switch {
		case one.Proven, slices.Contains(o.Known.Owner().Containers, id):
			return false
		case agreed != nil && !slices.Contains(agreed, id):
			return true
		}
		r.unproven = append(r.unproven, one.Container)
		return false
	})
	r.prior, r.notes = salvage.Prior(salvage.Sources{Lineage: o.Holder.Lineage, Key: key, Known: o.Known, Live: live, Remains: remains, CutOff: o.cutOff})
	r.live = withContainers(live, remains)
	return r, failures
}

// remains asks all runtimes of all hosts what a lineage has left there, and finds
// out which of its keys is the right one: the one that proves most.
func remains(ctx context.Context, p *project.Project, o claim, live resource.Live) (all []resource.Remains, key string, failures []error) {
	best := -1
	for _, candidate := range append(slices.Clone(o.keys), state.NewKey()) { // a new one proves nothing
		found, failed := p.Remains(ctx, o.Lineage, live, candidate)
		proven := 0
		for _, one := range found {
			if one.Proven {
				proven++
			}
		}
		if proven > best {
			best, all, key, failures = proven, found, candidate, failed
		}
	}
	return all, key, failures
}

// withContainers is the hosts with what runs there for one lineage.
func withContainers(live resource.Live, remains []resource.Remains) resource.Live {
	hosts := slices.Clone(live.Hosts)
	for i := range hosts {
		hosts[i].Containers = nil
		for _, one := range remains {
			if one.Container.Host == hosts[i].Name {
				hosts[i].Containers = append(hosts[i].Containers, one.Container)
			}
		}
		slices.SortFunc(hosts[i].Containers, resource.Container.Compare)
	}
	return resource.Live{Hosts: hosts}
}

// hands are the hosts on which apply removes what a lineage has.
func hands(p *project.Project, o claim, live resource.Live, owner resource.Owner) map[string]apply.Host {
	all := map[string]apply.Host{}
	for _, l := range live.Hosts {
		h := p.HostOf(o.Lineage, live, l.Name)
		p.Machine.Share(h)
		all[l.Name] = h.ForApply(owner, o.Holder)
	}
	return all
}
