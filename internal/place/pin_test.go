package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"cosplay/internal/resource"
)

// atSlots gives about half of the requests a slot of a GPU, of which some are illegal.
func atSlots(r *rand.Rand, gpus []GPU, requests []Request) []Request {
	kinds := []resource.Sharing{resource.SharingAuto, resource.SharingAuto, resource.SharingMIG, resource.SharingTime, resource.SharingCompute}
	for i := range requests {
		gpu := gpus[r.IntN(len(gpus))]
		if r.IntN(2) == 0 || !gpu.Model.MIG() {
			continue
		}
		p := gpu.Model.Profiles[r.IntN(len(gpu.Model.Profiles))]
		want := &requests[i].Want
		if want.Sharing = kinds[r.IntN(len(kinds))]; want.Sharing == resource.SharingCompute {
			if parts := gpu.Model.Divisions(p); len(parts) > 0 {
				p = parts[r.IntN(len(parts))]
			} else {
				want.Sharing = resource.SharingMIG
			}
		}
		want.GPU, want.Slice = gpu.UUID, fmt.Sprintf("%s@%d", p.Name, p.Starts[r.IntN(len(p.Starts))]+r.IntN(8)/7)
	}
	return requests
}

// TestSlotsComeFirst places sessions at slots with and without others that have none: the others change neither which slots are given
// nor which are refused, and a session that is alone gets each legal slot of an empty GPU that is large enough.
func TestSlotsComeFirst(t *testing.T) {
	given, refused := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		gpus := randomFleet(r)
		requests := atSlots(r, gpus, randomRequests(r, 1+r.IntN(10), 1+r.IntN(4)))
		all := Place(gpus, requests)
		check(t, gpus, requests, all)
		named := slices.DeleteFunc(slices.Clone(requests), func(q Request) bool { return !atSlot(q) })
		alone := Place(gpus, named)
		for _, q := range named {
			p, q := placeOf(all, q.Address), placeOf(alone, q.Address)
			if p != q {
				t.Fatalf("seed %d: %v beside others, %v without\n%s\n%s", seed, p, q, all, alone)
			}
			if q == (resource.Slice{}) {
				refused++
			} else {
				given++
			}
		}
	}
	if given < 150 || refused < 150 {
		t.Errorf("%d have their slots, %d were refused", given, refused)
	}
}

func TestEachSlot(t *testing.T) {
	for _, key := range []string{"h200", "a100-80gb", "a30"} {
		m := model(key)
		for _, p := range m.Profiles {
			for slot := range m.MemorySlices + 1 {
				gpus, requests := rack("lab", key), ask("lab", "mine", 1, "750")
				requests[0].Want.GPU, requests[0].Want.Slice = gpus[0].UUID, fmt.Sprintf("%s@%d", p.Name, slot)
				r := Place(gpus, requests)
				check(t, gpus, requests, r)
				if legal := slices.Contains(p.Starts, slot); legal != (len(r.Placed) == 1) {
					t.Errorf("%s, %s at slot %d, legal %t:\n%s", key, p.Name, slot, legal, r)
				}
			}
		}
	}
}

func atSlot(q Request) bool {
	_, slot := resource.CutSlot(q.Want.Slice)
	return slot >= 0
}

// placeOf is the slice of a session in a result, and nothing if it was refused.
func placeOf(r Result, a resource.Address) resource.Slice {
	for _, p := range r.Placed {
		if p.Address == a {
			return p.Slice
		}
	}
	return resource.Slice{}
}
