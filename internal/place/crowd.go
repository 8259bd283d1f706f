package place

import (
	"fmt"
	"math"
	"slices"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// A squeeze is how little of a GPU sessions make do with that share it and permit it.
type squeeze struct {
	memory float64 // the part of their memory that those count with which may oversubscribe a GPU
	sms    bool    // sessions by MPS have the smallest part of the SMs that is within their tolerance
}

var roomy = squeeze{memory: 1}

// crowdings are the parts of the memory, in the order in which they are tried: a GPU is not more crowded than it has to
// be.
var crowdings = []float64{2.0 / 3, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 6, 1.0 / 8, 1.0 / maxLoad}

// placeCrowded places requests, as roomy as gives all sessions a place within their tolerances that permit less.
func placeCrowded(gpus []GPU, requests []Request) (best Result) {
	permits := map[resource.Address]bool{}
	tries, mps, over := []squeeze{roomy}, false, false
	for _, q := range requests {
		mps, over = mps || q.Want.Sharing == resource.SharingMPS, over || q.Want.Oversubscribe
		permits[q.Address] = q.Want.Oversubscribe || q.Want.Sharing == resource.SharingMPS
	}
	if mps {
		tries = append(tries, squeeze{1, true})
	}
	for _, crowding := range crowdings {
		if over {
			tries = append(tries, squeeze{crowding, mps})
		}
	}
	least := lack{}
	for i, by := range tries {
		r := placeGroups(gpus, requests, by)
		if now := r.lack(requests); i == 0 || now.less(least) {
			best, least = r, now
		}
		refusedOf := slices.ContainsFunc(best.Refused, func(refused Refusal) bool {
			return slices.ContainsFunc(refused.Addresses, func(a resource.Address) bool { return permits[a] })
		})
		if !refusedOf && !least.far {
			break
		}
	}
	return best
}

// lack is what a placement does not give.
type lack struct {
	refused int  // sessions
	far     bool // a session by MPS has more than its tolerance over its error alone
}

func (l lack) less(o lack) bool {
	return l.refused < o.refused || l.refused == o.refused && o.far && !l.far
}

func (r Result) lack(requests []Request) (l lack) {
	for _, one := range r.Refused {
		l.refused += len(one.Addresses)
	}
	byMPS := map[resource.Address]resource.Request{}
	for _, q := range requests {
		if q.Want.Sharing == resource.SharingMPS {
			byMPS[q.Address] = q.Want
		}
	}
	for _, p := range r.Placed {
		want, is := byMPS[p.Address]
		l.far = l.far || is && p.Fit.Error(want.Fit.Prefer) > p.Alone.Error(want.Fit.Prefer)+want.Fit.Tolerance+1e-9
	}
	return l
}

// memoryMiB is what a session counts with of the memory of a GPU that it shares.
func (c *class) memoryMiB() int {
	if !c.over {
		return c.target.MemoryMiB
	}
	return int(math.Ceil(float64(c.target.MemoryMiB) * c.squeeze.memory))
}

// crowded warns of a GPU whose sessions may use more memory together than it has.
func (f *fleet) crowded(c *card) (w Warning, is bool) {
	sum := 0
	for _, s := range c.occupants {
		sum += s.class.target.MemoryMiB
	}
	if !c.isShared() || sum <= c.Model.MemoryMiB {
		return w, false
	}
	on := prose.Each(c.occupants, func(s occupant) resource.Address { return f.requests[s.request].Address })
	return Warning{Sessions: on, Note: "memory is oversubscribed", Far: true,
		Text: fmt.Sprintf("%s may use %d MiB together, and %s has %d MiB: when others have taken it, CUDA's out of memory comes before the limit of a session",
			resource.AddressNames(on, 3), sum, c.label(), c.Model.MemoryMiB)}, true
}
