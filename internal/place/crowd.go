package place

import (
	"fmt"
	"math"
	"slices"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// crowdings are the parts of their memory that sessions which may oversubscribe a GPU count with, in the order in which
// they are tried: a GPU is not more crowded than it has to be.
var crowdings = []float64{1, 2.0 / 3, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 6, 1.0 / 8, 1.0 / maxLoad}

// placeCrowded places requests, with as little oversubscription as gives all sessions room that permit it.
func placeCrowded(gpus []GPU, requests []Request) (r Result) {
	over := map[resource.Address]bool{}
	for _, q := range requests {
		over[q.Address] = q.Want.Oversubscribe
	}
	crowded := func(a resource.Address) bool { return over[a] }
	for _, crowding := range crowdings {
		r = placeGroups(gpus, requests, crowding)
		if !slices.ContainsFunc(r.Refused, func(refused Refusal) bool { return slices.ContainsFunc(refused.Addresses, crowded) }) {
			break
		}
	}
	return r
}

// memoryMiB is what a session counts with of the memory of a GPU that it shares.
func (c *class) memoryMiB() int {
	if !c.over {
		return c.target.MemoryMiB
	}
	return int(math.Ceil(float64(c.target.MemoryMiB) * c.crowding))
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
			resource.AddressNames(on, 3), sum, f.label(c), c.Model.MemoryMiB)}, true
}
