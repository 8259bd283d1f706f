package render

import (
	"fmt"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// StatusView is what is there, beside what the state remembers.
type StatusView struct {
	Prior resource.Prior
	Live  resource.Live
	Drift []diff.Drift
}

// sessionState says in a word or two how a session is.
func (v StatusView) sessionState(s resource.PriorSession) string {
	if _, there := diff.OwnSlice(s, v.Live); s.Handle != nil && !there {
		return "slice gone"
	}
	if s.Container == nil {
		return "unfinished"
	}
	c, there := v.Live.Container(s.Slice.Host, s.ID)
	if !there {
		return "gone"
	}
	return c.State
}

// driftOf lists what has drifted of a session.
func (v StatusView) driftOf(a resource.Address) []diff.Drift {
	var all []diff.Drift
	for _, d := range v.Drift {
		if d.Session != nil && *d.Session == a {
			all = append(all, d)
		}
	}
	return all
}

// counted is how many things have drifted that count.
func (v StatusView) counted() int {
	n := 0
	for _, d := range v.Drift {
		if !d.Told {
			n++
		}
	}
	return n
}

// orphans are containers on a host that no session of the state has.
func (v StatusView) orphans(h resource.Host) []resource.Container {
	var all []resource.Container
	for _, c := range h.Containers {
		if !slices.ContainsFunc(v.Prior.Sessions, func(s resource.PriorSession) bool { return s.Slice.Host == h.Name && s.ID == c.Session }) {
			all = append(all, c)
		}
	}
	return all
}

// owner finds the session that a live slice belongs to.
func (v StatusView) owner(live resource.LiveSlice) (resource.PriorSession, bool) {
	for _, s := range v.Prior.Sessions {
		if own, ok := diff.OwnSlice(s, v.Live); ok && own == live {
			return s, true
		}
	}
	return resource.PriorSession{}, false
}

func (v StatusView) labels() labels {
	var all []resource.Address
	for _, s := range v.Prior.Sessions {
		all = append(all, s.Address)
	}
	return newLabels(all)
}

// slotMap is a GPU as it is now.
func (v StatusView) slotMap(g resource.GPU, l labels) slotMap {
	m := slotMap{model: g.Model, mig: g.MIG && g.Model.MIG()}
	for _, slice := range g.Slices {
		o := occupant{slice: slice.Slice}
		if s, ok := v.owner(slice); ok {
			o.session, o.label = &s.Address, l.of(s.Address)
		}
		m.taken = append(m.taken, o)
	}
	for _, s := range v.Prior.Sessions {
		if s.Slice.Whole() && s.Slice.Host == g.Host && s.Slice.GPU == g.UUID {
			m.taken = append(m.taken, occupant{slice: s.Slice, session: &s.Address, label: l.of(s.Address)})
		}
	}
	return m
}

// computeWords is "7 of 7 compute slices".
func (m slotMap) computeWords() string {
	if !m.mig {
		return ""
	}
	return fmt.Sprintf("%d of %s", m.computeTaken(), count(m.model.ComputeSlices, "compute slice"))
}
