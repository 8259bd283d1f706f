package place

import "cosplay/internal/resource"

// A Share is what sessions of one target get of an empty GPU in one way.
type Share struct {
	Sharing  resource.Sharing
	Sessions int            // that fit at most, up to maxLoad
	Slice    resource.Slice // of one of them alone
	Alone    resource.Fit   // of one session, whatever the others do; where they share, while these are idle
	Busy     resource.Fit   // of the session with the worst fit while all are busy
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
		if n == 0 {
			share.Slice, share.Alone = r.Placed[0].Slice, r.Placed[0].Fit
		}
		share.Sessions, share.Busy = n+1, busiest(r.Placed, o.Prefer)
	}
	return share
}

// busiest is the worst fit while all sessions are busy.
func busiest(placed []Placed, prefer resource.Preference) (worst resource.Fit) {
	for i, p := range placed {
		sharers := 1
		for j, q := range placed {
			if i != j && p.Slice.SharesWith(q.Slice) {
				sharers++
			}
		}
		if busy := p.Fit.Busy(sharers, p.Slice.Percent > 0 || p.Slice.Divides()); i == 0 || busy.Error(prefer) > worst.Error(prefer) {
			worst = busy
		}
	}
	return worst
}
