package project

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"cosplay/internal/apply"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
	"cosplay/internal/state"
)

// party is a project whose things are looked for without counting on its state.
type party struct {
	holder resource.Holder
	dir    string         // the project's folder
	known  resource.Prior // its state, where that can be read
	keys   []string       // that may be its state's
	cutOff bool           // a run of it did not come to its end
	own    bool           // it is the project that the command is about
	main   bool           // and what that is known as now
}

// ownParties are what the project is known as; the last is the main one.
func (p *Project) ownParties(v StateView, live resource.Live) []party {
	var all []party
	for _, h := range p.ownHolders(v, live) {
		one := party{holder: h, dir: p.Dir, keys: v.words.Keys, cutOff: p.unfinished(), own: true}
		switch {
		case h.Lineage == v.prior.Lineage:
			one.known, one.keys = v.prior, []string{v.prior.Key}
		case v.There && !v.unclear: // another project's, whose key is only ours if it proves something
			one.keys = append([]string{state.NewKey()}, one.keys...)
		}
		one.known.Forgotten = nil // what was given up was this project's all the same
		all = append(all, one)
	}
	all[len(all)-1].main = true
	return all
}

// otherParty is another project, by what its own state tells if that is there.
func otherParty(h resource.Holder) party {
	store := state.Store{Path: h.State}
	one := party{holder: h, dir: filepath.Dir(h.State), keys: store.Salvage().Keys}
	if dir, once := folderOfRun(h.State); once {
		one.dir = dir
	}
	if prior, err := store.Load(); err == nil && prior.Lineage == h.Lineage {
		one.known, one.keys = prior, []string{prior.Key}
		one.known.Forgotten = nil
	}
	_, err := os.Stat(store.JournalPath())
	one.cutOff = err == nil
	return one
}

// partyHost is a host as the party has it: by its own name for it, with its own
// folders.
func (p *Project) partyHost(o party, live resource.Live, name string) *host {
	h := *p.hosts[name]
	if !o.own || name == p.unnamed {
		h.config.Name = theirName(o.holder.Lineage, live, name)
	}
	statePath := o.holder.State
	if o.own {
		statePath = p.Store.Path // it may have been moved
	}
	h.folders = foldersOf(o.dir, statePath, h.config.Name)
	return &h
}

// theirName is what a project calls a host, as far as its slices tell.
func theirName(lineage string, live resource.Live, name string) string {
	host, _ := live.Host(name)
	for _, page := range host.Ledger {
		holder, _ := page.Holder(lineage)
		for _, s := range holder.Slices {
			if s.Host != "" {
				return s.Host
			}
		}
	}
	return name
}

// recovered is what a party has, put together, beside the hosts with its
// containers.
type recovered struct {
	prior    resource.Prior
	live     resource.Live
	unproven []resource.Container // claimed by labels alone
	notes    []string
}

// recoverParty puts together what a party has. Containers that nothing proves to be
// its own count as its own only with a person's consent, which they wait for;
// once it was asked for, agreed names those that it was given for.
func (p *Project) recoverParty(ctx context.Context, o party, live resource.Live, agreed []string) (recovered, []error) {
	remains, key, failures := p.remains(ctx, o, live)
	live, err := p.withReleased(o.known, live)
	if err != nil {
		failures = append(failures, err)
	}
	var r recovered
	remains = slices.DeleteFunc(remains, func(one resource.Remains) bool {
		id := one.Container.ID
		switch {
		case one.Proven, slices.Contains(o.known.Owner().Containers, id):
			return false
		case agreed != nil && !slices.Contains(agreed, id):
			return true
		}
		r.unproven = append(r.unproven, one.Container)
		return false
	})
	r.prior, r.notes = salvage.Prior(salvage.Sources{Lineage: o.holder.Lineage, Key: key, Known: o.known, Live: live, Remains: remains, CutOff: o.cutOff})
	r.live = withContainers(live, remains)
	return r, failures
}

// remains asks all runtimes of all hosts what a party has left there, and finds
// out which of its keys is the right one: the one that proves most.
func (p *Project) remains(ctx context.Context, o party, live resource.Live) (all []resource.Remains, key string, failures []error) {
	best := -1
	for _, candidate := range append(slices.Clone(o.keys), state.NewKey()) { // a new one proves nothing
		found, failed := p.remainsWith(ctx, o, live, candidate)
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

func (p *Project) remainsWith(ctx context.Context, o party, live resource.Live, key string) (all []resource.Remains, failures []error) {
	for _, l := range live.Hosts {
		h := p.partyHost(o, live, l.Name)
		if h.engine == nil && p.needsEngine(h, o.known) {
			if err := p.connectEngine(ctx, h); err != nil {
				failures = append(failures, err)
			}
		}
		for name, runtime := range h.runtimes(resource.Owner{Lineage: o.holder.Lineage, Key: key}) {
			if o.own && !o.main && name == resource.RuntimeProcess {
				continue // the folders bear no lineage: they are those of now
			}
			found, err := runtime.Remains(ctx)
			if err != nil {
				failures = append(failures, err)
			}
			for i := range found {
				found[i].Container.Host = l.Name
			}
			all = append(all, found...)
		}
	}
	slices.SortFunc(all, func(a, b resource.Remains) int { return a.Container.Compare(b.Container) })
	return all, failures
}

// withContainers is the hosts with what runs there for one party.
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

// hands are what a party's things are changed with.
func (p *Project) hands(o party, live resource.Live, owner resource.Owner) map[string]apply.Host {
	all := map[string]apply.Host{}
	for _, l := range live.Hosts {
		h := p.partyHost(o, live, l.Name)
		if h.engine == nil {
			h.engine = p.engine // it was connected where there was need
		}
		all[l.Name] = h.forApply(owner, o.holder)
	}
	return all
}
