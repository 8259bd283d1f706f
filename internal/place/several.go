package place

import (
	"slices"

	"cosplay/internal/resource"
)

// A session with several GPUs is placed as as many requests as it has devices, each for a part of a whole GPU. As many
// sessions of a class as there are have at most one device each on a GPU: then their devices can be dealt so that each
// session has its own on distinct GPUs.

// placeDevices places requests until each session has all of its devices or none.
func placeDevices(gpus []GPU, requests []Request, by squeeze) Result {
	var refused []Refusal
	for {
		f := newFleet(gpus, devices(requests), by, nil)
		r := f.place()
		cut, some := f.incomplete()
		if !some {
			r.Placed = joined(requests, r.Placed)
			r.Refused = append(r.Refused, refused...)
			slices.SortStableFunc(r.Refused, func(a, b Refusal) int { return a.Addresses[0].Compare(b.Addresses[0]) })
			return r
		}
		refused = append(refused, cut)
		requests = slices.DeleteFunc(slices.Clone(requests), func(r Request) bool { return slices.Contains(cut.Addresses, r.Address) })
	}
}

// haveSeveral reports whether a session has several devices.
func haveSeveral(requests []Request) bool {
	return slices.ContainsFunc(requests, func(r Request) bool { return r.Want.Devices() > 1 })
}

// devices returns one request for each device.
func devices(requests []Request) []Request {
	if !haveSeveral(requests) {
		return requests
	}
	var all []Request
	for _, r := range requests {
		for n := range r.Want.Devices() {
			one := r
			one.device = n
			switch {
			case len(r.KeptMore)+1 != r.Want.Devices():
				one.Kept = nil
			case n > 0 && r.Kept != nil:
				one.Kept = &r.KeptMore[n-1]
			}
			all = append(all, one)
		}
	}
	return all
}

// most is how many devices of the class one GPU may have: one of each session.
func (c *class) most() int {
	if c.devices == 1 {
		return maxLoad
	}
	return len(c.waiting) / c.devices
}

// devicesFrom are the requests for all devices of a session, of which i is the first.
func (f *fleet) devicesFrom(i int) []Request {
	end := i
	for end < len(f.requests) && f.requests[end].Address == f.requests[i].Address {
		end++
	}
	return f.requests[i:end]
}

// modelFor is the model of all GPUs of the sessions of a class with several devices: among those of which enough GPUs
// have room for a session, or else most have, the one that comes closest.
func (f *fleet) modelFor(cl *class) (best string) {
	least, most := int64(0), -1
	tried := map[string]bool{}
	for _, c := range f.cards {
		name := c.Model.Name
		if tried[name] || !cl.mayUse(c) {
			continue
		}
		tried[name] = true
		trial := *cl
		trial.model, trial.aloneError = name, impossible
		trial.measure(f.cards)
		room := min(f.count(&trial, func(c *card) bool { return f.hasRoom(c, &trial) }), cl.devices)
		if room > most || room == most && trial.aloneError < least {
			best, least, most = name, trial.aloneError, room
		}
	}
	return best
}

// hasRoom reports whether a card has room for one more device of a class.
func (f *fleet) hasRoom(c *card, cl *class) bool { return f.roomFor(cl, c, impossible, 1) > 0 }

// incomplete refuses the last sessions of the first class of which some have not all of their devices. Later classes
// may have what these leave.
func (f *fleet) incomplete() (cut Refusal, some bool) {
	for _, c := range f.classes {
		if c.devices == 1 || c.accepted == len(c.waiting) {
			continue
		}
		sessions := c.waiting[:len(c.waiting)/c.devices] // their first devices
		for _, i := range sessions[c.accepted/c.devices:] {
			cut.Addresses = append(cut.Addresses, f.requests[i].Address)
		}
		for _, card := range f.cards {
			card.occupants = slices.DeleteFunc(card.occupants, func(o occupant) bool {
				return slices.Contains(cut.Addresses, f.requests[o.request].Address)
			})
		}
		cut.Advice = f.refusal(c, cut.Addresses)
		return cut, true
	}
	return cut, false
}

// joined returns the placements of the devices as those of their sessions, with the worst fit of them.
func joined(requests []Request, placed []Placed) []Placed {
	if !haveSeveral(requests) {
		return placed
	}
	wants := make(map[resource.Address]Request, len(requests))
	for _, r := range requests {
		wants[r.Address] = r
	}
	var all []Placed
	for _, p := range placed {
		if last := len(all) - 1; last >= 0 && all[last].Address == p.Address {
			all[last].join(p)
		} else {
			all = append(all, p)
		}
	}
	for i := range all {
		all[i] = wants[all[i].Address].inItsOrder(all[i])
	}
	return all
}

// join adds another device of the session.
func (p *Placed) join(device Placed) {
	p.More = append(p.More, device.Slice)
	if prefer := p.Want.Fit.Prefer; device.Fit.Error(prefer) > p.Fit.Error(prefer) {
		p.Fit = device.Fit
	}
}

// inItsOrder is a placement with the devices in the order that the session's programs know, if these are the same.
func (r Request) inItsOrder(p Placed) Placed {
	other := func(s resource.Slice) bool { return !slices.Contains(r.kept(), s) }
	if r.Kept != nil && len(p.More) == len(r.KeptMore) && !other(p.Slice) && !slices.ContainsFunc(p.More, other) {
		p.Slice, p.More = *r.Kept, r.KeptMore
	}
	return p
}

// spread is the GPUs of a session with several devices, in the order of these.
type spread struct {
	cards []*card
	worst *card // of the device whose fit is the worst
	error int64 // of that one
}

func (f *fleet) spreads(cards []*card) map[resource.Address]*spread {
	all := map[resource.Address]*spread{}
	for _, c := range cards {
		for _, s := range c.occupants {
			if s.class.devices == 1 {
				continue
			}
			address := f.requests[s.request].Address
			first, _ := s.class.errors(c.fit(s))
			if all[address] == nil {
				all[address] = &spread{worst: c, error: first}
			}
			on := all[address]
			if on.cards = append(on.cards, c); first > on.error {
				on.worst, on.error = c, first
			}
		}
	}
	return all
}
