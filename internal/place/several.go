package place

import (
	"cmp"
	"slices"

	"cosplay/internal/resource"
)

// A session with several GPUs is placed as as many requests as it has devices, each for a part of a whole GPU. As many
// sessions of a class as there are have at most one device each on a GPU: then their devices can be dealt so that each
// session has its own on distinct GPUs.

// placeSessions places requests until each session has all of its devices or none.
func placeSessions(gpus []GPU, requests []Request) Result {
	requests = slices.Clone(requests)
	var refused []Refusal
	for {
		f := newFleet(gpus, devices(requests))
		r := f.place()
		if moved := f.divided(r); len(moved) > 0 { // not all of its devices can stay
			for i := range requests {
				if moved[requests[i].Address] {
					requests[i].Kept, requests[i].KeptMore = nil, nil
				}
			}
			continue
		}
		cut := f.incomplete()
		if len(cut) == 0 {
			r.Placed = joined(requests, r.Placed)
			r.Refused = append(r.Refused, refused...)
			slices.SortStableFunc(r.Refused, func(a, b Refusal) int { return a.Addresses[0].Compare(b.Addresses[0]) })
			return r
		}
		for _, refusal := range cut {
			refused = append(refused, refusal)
			requests = slices.DeleteFunc(requests, func(r Request) bool { return slices.Contains(refusal.Addresses, r.Address) })
		}
	}
}

// devices returns one request for each device.
func devices(requests []Request) []Request {
	if !slices.ContainsFunc(requests, func(r Request) bool { return r.Want.Devices() > 1 }) {
		return requests
	}
	var all []Request
	for _, r := range requests {
		for n := range r.Want.Devices() {
			one := r
			one.device = n
			if n > 0 && r.Kept != nil {
				one.Kept = &r.KeptMore[n-1]
			}
			all = append(all, one)
		}
	}
	return all
}

// dealOut orders the devices that wait so that those of one session are as far apart as there are sessions.
func (c *class) dealOut(requests []Request) {
	if c.devices > 1 {
		slices.SortStableFunc(c.waiting, func(a, b int) int { return cmp.Compare(requests[a].device, requests[b].device) })
	}
}

// most is how many devices of the class one GPU may have: one of each session.
func (c *class) most() int {
	if c.devices == 1 {
		return maxLoad
	}
	return len(c.waiting) / c.devices
}

// divided are the sessions of which some devices stay, and not all.
func (f *fleet) divided(r Result) map[resource.Address]bool {
	all := map[resource.Address]bool{}
	for i, q := range f.requests {
		if f.classOf[i].devices > 1 && q.Kept != nil && slices.Contains(f.classOf[i].waiting, i) {
			all[q.Address] = true
		}
	}
	return all
}

// incomplete refuses the last sessions of each class that have not all of their devices.
func (f *fleet) incomplete() (all []Refusal) {
	for _, c := range f.classes {
		if c.devices == 1 || c.accepted == len(c.waiting) {
			continue
		}
		sessions := c.waiting[:len(c.waiting)/c.devices] // their first devices
		var addresses []resource.Address
		for _, i := range sessions[c.accepted/c.devices:] {
			addresses = append(addresses, f.requests[i].Address)
		}
		all = append(all, Refusal{Addresses: addresses, Advice: f.refusal(c, addresses)})
	}
	return all
}

// joined returns the placements of the devices as those of their sessions, with the worst fit of them.
func joined(requests []Request, placed []Placed) []Placed {
	wants := make(map[resource.Address]Request, len(requests))
	for _, r := range requests {
		wants[r.Address] = r
	}
	var all []Placed
	for _, p := range placed {
		want := wants[p.Address]
		if last := len(all) - 1; last >= 0 && all[last].Address == p.Address {
			all[last].More = append(all[last].More, p.Slice)
			if p.Fit.Error(want.Want.Fit.Prefer) > all[last].Fit.Error(want.Want.Fit.Prefer) {
				all[last].Fit = p.Fit
			}
			continue
		}
		all = append(all, p)
	}
	for i := range all {
		if want := wants[all[i].Address]; want.Kept != nil && len(all[i].More) > 0 { // in the order that its programs know
			all[i].Slice, all[i].More = *want.Kept, want.KeptMore
		}
	}
	return all
}
