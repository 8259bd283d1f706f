package render

import (
	"fmt"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// StatusView is what is there, beside what the state remembers.
type StatusView struct {
	Prior resource.Prior
	Live  resource.Live
	Drift []diff.Drift
	Flags []string        // global flags that were given, for the commands that are suggested
	Lost  map[string]bool // lineages of projects that hold a GPU and whose state is lost

	KilledRuns map[string]string // by lineage: where a cosplay run was typed that was killed

	Used    map[resource.Address]resource.Use // of each session that counts
	Targets func() []resource.Target          // the catalog's, for the verdict on what was used
}

// fleet is a view with what its screens look up again and again.
type fleet struct {
	StatusView
	labels labels
	owners map[resource.LiveSlice]resource.Address // of the slices that are ours
	whole  map[[2]string]resource.Address          // by host and UUID: of the GPUs that are ours as a whole
	drift  map[resource.Address][]diff.Drift
	ssh    bool // there is a session with ssh
}

func newFleet(v StatusView) fleet {
	f := fleet{StatusView: v, owners: map[resource.LiveSlice]resource.Address{}, whole: map[[2]string]resource.Address{}, drift: map[resource.Address][]diff.Drift{}}
	var all []resource.Address
	for _, s := range v.Prior.Sessions {
		all = append(all, s.Address)
		f.ssh = f.ssh || s.Spec.SSH.Enabled
		if own, ok := diff.OwnSlice(s, v.Live); ok {
			f.owners[own] = s.Address
		}
		if s.Slice.Whole() {
			f.whole[[2]string{s.Slice.Host, s.Slice.GPU}] = s.Address
		}
	}
	for _, d := range v.Drift {
		if d.Session != nil {
			f.drift[*d.Session] = append(f.drift[*d.Session], d)
		}
	}
	f.labels = newLabels(all)
	return f
}

// sessionState says in a word or two how a session is.
func (v StatusView) sessionState(s resource.PriorSession) string {
	if _, there := v.Live.GPU(s.Slice.Host, s.Slice.GPU); !there {
		if _, is := v.Live.Unusable(s.Slice.Host, s.Slice.GPU); is {
			return "GPU unusable"
		}
		return "GPU gone"
	}
	_, there := diff.OwnSlice(s, v.Live)
	if _, readable := v.Live.Sliced(s.Slice.Host, s.Slice.GPU); s.Handle != nil && !there {
		if !readable {
			return "slice unknown"
		}
		return "slice gone"
	}
	if s.Incomplete() {
		return "unfinished"
	}
	c, there := v.Live.Container(s.Slice.Host, s.Runtime, s.ID)
	if !there {
		return "gone"
	}
	return c.State
}

// lock is what is believed of the clock lock that cosplay holds on a GPU, which NVML cannot read.
type lock string

const (
	noLock       lock = "none"     // cosplay has set none
	lockHeld     lock = "held"     // nothing speaks against it
	lockUnlocked lock = "unlocked" // cosplay has lifted it
	lockLifted   lock = "lifted"   // by somebody else, or a reboot
	lockUnknown  lock = "unknown"  // a run was cut off while it set or lifted it
)

// lock gives the clock in MHz too where a lock is held.
func (v StatusView) lock(g resource.GPU) (lock, int) {
	held, ok := v.Prior.GPU(g.Host, g.UUID)
	lifted := slices.ContainsFunc(v.Drift, func(d diff.Drift) bool {
		return d.Class == diff.ClockLock && d.Host == g.Host && d.GPU == g.UUID
	})
	switch {
	case ok && held.ClockUnsure:
		return lockUnknown, 0
	case !ok || !held.Applied.Has(resource.SMClock):
		return noLock, 0
	case held.Applied.Value(resource.SMClock) == 0:
		return lockUnlocked, 0
	case lifted:
		return lockLifted, 0
	}
	return lockHeld, held.Applied.Value(resource.SMClock)
}

// counted is how many things have drifted that count.
func (v StatusView) drifted() int {
	n := 0
	for _, d := range v.Drift {
		if !d.Informational {
			n++
		}
	}
	return n
}

// orphans are containers on a host that no session of the state has.
func (v StatusView) orphans(h resource.Host) []resource.Container {
	known := map[string]bool{}
	for _, s := range v.Prior.Sessions {
		known[s.ID] = known[s.ID] || s.Slice.Host == h.Name
	}
	var all []resource.Container
	for _, c := range h.Containers {
		if !known[c.Session] {
			all = append(all, c)
		}
	}
	return all
}

// slotMap is a GPU as it is now.
func (f fleet) slotMap(g resource.GPU) slotMap {
	m := slotMap{model: g.Model, mig: g.MIG && g.Model.MIG()}
	for _, slice := range g.Slices {
		o := occupant{slice: slice.Slice}
		if owner, ok := f.owners[slice]; ok {
			o.session, o.label = &owner, f.labels.of(owner)
		}
		m.taken = append(m.taken, o)
	}
	if owner, ok := f.whole[[2]string{g.Host, g.UUID}]; ok {
		m.taken = append(m.taken, occupant{session: &owner, label: f.labels.of(owner)})
	}
	return m
}

// computeWords is "7 of 7 compute slices".
func (m slotMap) computeWords() string {
	if !m.mig {
		return ""
	}
	return fmt.Sprintf("%d of %s", m.computeTaken(), prose.Count(m.model.ComputeSlices, "compute slice"))
}
