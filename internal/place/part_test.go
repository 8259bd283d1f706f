package place

import (
	"math/rand/v2"
	"slices"
	"testing"

	"cosplay/internal/resource"
)

// TestComputeInstancesStay: sessions that stay keep their compute instances, and others get those that are free beside
// them, also where a foreign one is in the GPU instance.
func TestComputeInstancesStay(t *testing.T) {
	joined, avoided := 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 5))
		gpus := rack("lab", "h200", "h200")
		requests := ask("lab", "w", 2+r.IntN(6), []string{"1060", "1660", "t4"}[r.IntN(3)])
		for i := range requests {
			requests[i].Want.Sharing = resource.SharingCompute
			requests[i].Want.Slice = []string{"1c.2g.35gb", "1c.4g.71gb", "2c.7g.141gb"}[seed%3]
		}
		first := Place(gpus, requests)
		check(t, gpus, requests, first)
		gpus, requests = keep(gpus, requests, first)

		gone := first.Placed[r.IntN(len(first.Placed))]
		i := slices.IndexFunc(requests, func(q Request) bool { return q.Address == gone.Address })
		requests[i].Kept = nil
		at := slices.IndexFunc(gpus, func(g GPU) bool { return g.UUID == gone.Slice.GPU })
		if taken := seed%2 == 0; taken { // by another process
			gpus[at].Foreign = append(gpus[at].Foreign, resource.LiveSlice{Slice: gone.Slice.Place()})
		}
		again := Place(gpus, requests)
		for _, p := range again.Placed {
			q := requests[slices.IndexFunc(requests, func(q Request) bool { return q.Address == p.Address })]
			if q.Kept != nil && *q.Kept != p.Slice {
				t.Errorf("seed %d: %s was moved from %s to %s", seed, p.Address, q.Kept, p.Slice)
			}
			if p.Address != gone.Address {
				continue
			}
			beside := slices.ContainsFunc(again.Placed, func(o Placed) bool {
				return o.Address != p.Address && o.Slice.Instance() == p.Slice.Instance()
			})
			switch {
			case seed%2 == 0 && p.Slice.Instance() == gone.Slice.Instance():
				t.Errorf("seed %d: %s is beside a foreign compute instance", seed, p.Slice)
			case seed%2 == 0:
				avoided++
			case beside:
				joined++
			}
		}
		if seed%2 == 1 {
			check(t, gpus, requests, again)
		}
	}
	if joined < 20 || avoided < 20 {
		t.Errorf("%d joined others, %d avoided a foreign one: the instances are too alike", joined, avoided)
	}
}

// A profile with other media engines is for sessions that name it, as often as the driver allows it, beside sessions
// that do not.
func TestVariantsAreByName(t *testing.T) {
	gpus := rack("lab", "h200", "a100-80gb")
	requests := append(ask("lab", "m", 2, "2060"), ask("lab", "w", 9, "2060")...)
	requests[0].Want.Slice, requests[1].Want.Slice = "1g.18gb+me", "1g.10gb+me"
	result := Place(gpus, requests)
	check(t, gpus, requests, result)
	if len(result.Placed) != len(requests) {
		t.Fatalf("%d of %d sessions have a slice: %v", len(result.Placed), len(requests), result.Refused)
	}
	for _, p := range result.Placed {
		want := requests[slices.IndexFunc(requests, func(q Request) bool { return q.Address == p.Address })].Want.Slice
		if want != "" && p.Slice.Profile != want || want == "" && resource.Variant(p.Slice.Profile) {
			t.Errorf("%s has %s, want %q", p.Address, p.Slice, want)
		}
	}

	requests[1].Want.Slice = "1g.18gb+me" // of which an H200 has one
	if result := Place(gpus, requests); len(result.Refused) != 1 || len(result.Placed) != len(requests)-1 {
		t.Errorf("%d placed, refused %v", len(result.Placed), result.Refused)
	}
	kept, again := keep(gpus, requests[:1], Place(gpus, requests[:1]))
	if result := Place(kept, again); len(result.Placed) != 1 || result.Placed[0].Slice != *again[0].Kept {
		t.Errorf("a session with a variant was moved: %+v", result)
	}
}
