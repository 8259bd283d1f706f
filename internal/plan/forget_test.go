package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

// TestForgotten: after any operations, a state counts as given up just what it would by a look at all of its sessions,
// and a step forgets what a command forgets.
func TestForgotten(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := resource.Prior{Lineage: "a", BootIDs: map[string]string{}}
		for step := range 40 {
			name := fmt.Sprint("s", random.IntN(4))
			s := resource.Session{Address: resource.One(name), ID: name, Runtime: []string{"process", "docker"}[random.IntN(2)],
				Slice: resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: random.IntN(2), Size: 1, Sharing: resource.SharingTime}}
			handle := resource.Handle{UUID: fmt.Sprint("MIG-", random.IntN(3))}
			body := resource.Body{ID: fmt.Sprint("body-", random.IntN(3)), Session: name, Runtime: s.Runtime, Serial: random.IntN(2)}
			op, made := Op(Forget{Address: s.Address}), Made{Handle: &handle, Body: &body}
			switch random.IntN(6) {
			case 0:
				op = CreateSlice{Session: s}
			case 1:
				op = Prepare{Session: s}
			case 2:
				op = DestroySlice{Address: s.Address, Slice: s.Slice}
			case 3:
				op = Unprepare{Address: s.Address}
			case 4:
				op = TakeGPU{Host: "lab", GPU: "GPU-0"}
			}
			want := p.Forget(s.Address)
			next := Fold(p, op, made)
			if d := cmp.Diff(next.Remembering().Forgotten, next.Forgotten); d != "" {
				t.Fatalf("seed %d, step %d, %T:\n%s", seed, step, op, d)
			}
			if _, forgets := op.(Forget); forgets && !cmp.Equal(sorted(want.Forgotten), sorted(next.Forgotten)) {
				t.Fatalf("seed %d, step %d: forgotten are %v, want %v", seed, step, next.Forgotten, want.Forgotten)
			}
			p = next
			if random.IntN(8) == 0 {
				p.GPUs, p = nil, p.ForgetGPUs(map[resource.GPUKey]bool{{Host: "lab", UUID: "GPU-0"}: true})
			}
		}
	}
}

func sorted(all []string) []string { return append([]string{}, slices.Sorted(slices.Values(all))...) }
