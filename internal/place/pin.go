package place

import (
	"fmt"
	"slices"

	"cosplay/internal/resource"
)

// pin places the new sessions whose slots the configuration names. Those for which that is impossible remain waiting, and
// nothing else is packed for them.
func (f *fleet) pin() {
	for _, cl := range f.classes {
		if cl.slot < 0 {
			continue
		}
		cl.waiting = slices.DeleteFunc(cl.waiting, func(request int) bool {
			return slices.ContainsFunc(f.cards, func(c *card) bool { return f.pinTo(c, cl, request) })
		})
	}
	for _, cl := range f.classes {
		if cl.slot >= 0 && len(cl.waiting) > 0 { // before others are packed, which would look like the reason
			cl.refused = f.refusal(cl, f.addresses(cl.waiting))
		}
	}
	for _, c := range f.cards {
		if !c.pinned {
			continue
		}
		clock := c.bestClock(c.suitable())
		for i := range c.occupants {
			if s := &c.occupants[i]; s.pinned {
				first, _ := c.errorsOf(*s)
				s.limit = max(s.class.limit(0), first[clock])
			}
		}
	}
	f.sortCards()
}

// pinTo places a session at its slot of a GPU, and reports whether it did.
func (f *fleet) pinTo(c *card, cl *class, request int) bool {
	if !cl.mayUse(c) || !c.canTakeSlices() {
		return false
	}
	if why, _ := c.unsuited(cl); why != "" {
		return false
	}
	at, why := f.at(c, cl)
	if why != "" {
		return false
	}
	c.occupants = append(c.occupants, occupant{request: request, class: cl, slice: at, limit: cl.maxError(), pinned: true})
	if c.bestClock(c.suitable()) < 0 {
		c.occupants = c.occupants[:len(c.occupants)-1]
		return false
	}
	c.pinned = true
	return true
}

// at returns the slice of a class at its slot of a GPU, and why a session cannot have it, or "".
func (f *fleet) at(c *card, cl *class) (at resource.Slice, why string) {
	p, _ := c.Model.Profile(cl.slice)
	at = cl.sharing.On(resource.Slice{Host: c.Host, GPU: c.UUID, Profile: cl.slice, Start: cl.slot, Size: p.MemorySlices})
	if !slices.Contains(p.Starts, cl.slot) {
		return at, fmt.Sprintf("a %s can start at slot %s", cl.slice, startsText(p.Starts))
	}
	if starts := c.freeStarts(at); at.Divides() && len(starts) > 0 {
		at.ComputeStart = starts[0]
	}
	if why = f.problem(c, Request{Want: resource.Request{Host: c.Host}, Target: cl.target}, at); why != "" {
		return at, why
	}
	taken, index := c.taken(), c.model.parents[c.model.row(at)]
	if !slices.ContainsFunc(taken, within(at.Instance())) && c.roomBeside(taken).left[index] == 0 {
		return at, fmt.Sprintf("no more than %d %s fit on it", p.MaxInstances, p.Name)
	}
	return at, ""
}

// whyNotThere returns why a session cannot be at its slot of a GPU, and where it could be.
func (f *fleet) whyNotThere(c *card, cl *class) (why, cure string) {
	_, why = f.at(c, cl)
	if why == "" {
		return fmt.Sprintf("slot %d is free, but no clock keeps all sessions on it within fit.max_error", cl.slot), "a higher fit.max_error"
	}
	var free []int
	p, _ := c.Model.Profile(cl.slice)
	for _, slot := range p.Starts {
		other := *cl
		other.slot = slot
		if _, not := f.at(c, &other); not == "" {
			free = append(free, slot)
		}
	}
	why = fmt.Sprintf("a %s does not fit at slot %d (%s)", cl.slice, cl.slot, why)
	if len(free) == 0 {
		return why, "another GPU"
	}
	return why, fmt.Sprintf("another slot (%s), or slice = %q without one", startsText(free), cl.slice)
}
