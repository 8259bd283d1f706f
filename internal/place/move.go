package place

import (
	"fmt"
	"slices"

	"cosplay/internal/resource"
)

// maxTrials bounds how many sessions are moved on trial for one refusal.
const maxTrials = 32

// move finds one session that stays in its slice, without which all sessions of a class find room if it is placed
// again with them. It describes the move; "" if no single move is enough.
func (f *fleet) move(cl *class) string {
	if f.trial {
		return ""
	}
	trials := 0
	for _, c := range f.cards {
		if !cl.mayUse(c) || c.isWhole() {
			continue
		}
		for _, s := range c.occupants {
			if f.requests[s.request].Kept == nil || trials == maxTrials {
				continue
			}
			trials++
			if text := f.moved(cl, s); text != "" {
				return text
			}
		}
	}
	return ""
}

// moved places all sessions again, with one that may leave its slice.
func (f *fleet) moved(cl *class, s occupant) string {
	requests := slices.Clone(f.requests)
	requests[s.request].Kept = nil
	again := newFleet(f.gpus, requests, f.squeeze, f.models)
	again.trial = true
	r := again.place()
	for _, i := range append(slices.Clone(cl.waiting), s.request) {
		if devicesOf(r, f.requests[i].Address) < f.classOf[i].devices {
			return ""
		}
	}
	if len(r.Placed) <= f.placed() {
		return "" // another session would have to leave
	}
	address := f.requests[s.request].Address
	i := slices.IndexFunc(r.Placed, func(p Placed) bool { return p.Address == address })
	return fmt.Sprintf("%s at %s instead of %s (cosplay apply --replace %s creates it again there)", address, f.where(r.Placed[i].Slice, s.slice), f.where(s.slice, s.slice), address.Short())
}

// devicesOf counts the devices of a session that have a place.
func devicesOf(r Result, a resource.Address) (n int) {
	for _, p := range r.Placed {
		if p.Address == a {
			n++
		}
	}
	return n
}

// where names the place of a slice, and its GPU if it is another than that of a slice to compare with.
func (f *fleet) where(at, other resource.Slice) string {
	slot := "the whole GPU"
	if !at.Whole() {
		slot = fmt.Sprintf("slot %d", at.Start)
	}
	i := slices.IndexFunc(f.cards, func(c *card) bool { return c.Host == at.Host && c.UUID == at.GPU })
	if at.GPU == other.GPU || i < 0 {
		return slot
	}
	return slot + " of " + f.cards[i].label()
}

// placed counts the sessions that have a slice.
func (f *fleet) placed() int {
	n := 0
	for _, c := range f.cards {
		n += len(c.occupants)
	}
	return n
}
