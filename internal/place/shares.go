package place

import (
	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// A Share is what sessions of one target get of a GPU that has as many of them as fit. Of sessions whose parts differ, it
// is the one with the worst fit while all are busy.
type Share struct {
	Sharing  resource.Sharing
	Sessions int // up to maxLoad
	Slice    resource.Slice
	Alone    resource.Fit // while the others are idle
	Busy     resource.Fit // while all are busy
}

// Shares are the ways in which sessions of a target can have parts of a model of GPU, those that are possible.
func Shares(m resource.Model, t resource.Target, o resource.FitOptions) (all []Share) {
	for _, kind := range []resource.Sharing{resource.SharingMIG, resource.SharingCompute, resource.SharingExclusive, resource.SharingTime, resource.SharingMPS} {
		if share := shareOf(m, t, o, kind); share.Sessions > 0 {
			all = append(all, share)
		}
	}
	return all
}

func shareOf(m resource.Model, t resource.Target, o resource.FitOptions, kind resource.Sharing) Share {
	share := Share{Sharing: kind}
	gpu := GPU{GPU: resource.GPU{Host: "host", UUID: "GPU", Model: m, MIGCapable: m.MIG()}}
	var requests []Request
	for n := range maxLoad {
		requests = append(requests, Request{Address: resource.Nth("session", n), Target: t,
			Want: resource.Request{Host: gpu.Host, Target: t.Key, Fit: o, Sharing: kind}})
		r := Place([]GPU{gpu}, requests)
		if len(r.Refused) > 0 {
			break
		}
		worst, busy := busiest(m, r.Placed, o.Prefer)
		share.Sessions, share.Slice, share.Alone, share.Busy = n+1, worst.Slice, worst.Fit, busy
	}
	return share
}

// busiest is the session with the worst fit while all are busy, and that fit.
func busiest(m resource.Model, placed []Placed, prefer resource.Preference) (worst Placed, fitting resource.Fit) {
	for i, p := range placed {
		sharers := 1
		for j, q := range placed {
			if i != j && p.Slice.SharesWith(q.Slice) {
				sharers++
			}
		}
		if busy := fit.Busy(m, p.Slice, p.Fit, sharers); i == 0 || busy.Error(prefer) > fitting.Error(prefer) {
			worst, fitting = p, busy
		}
	}
	return worst, fitting
}
