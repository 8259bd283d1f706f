package place

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// groupOf returns requests for sessions with n GPUs each by MPS.
func groupOf(name string, sessions, n int, key string) []Request {
	all := ask("lab", name, sessions, key)
	for i := range all {
		all[i].Want.GPUs, all[i].Want.Sharing = n, resource.SharingMPS
	}
	return all
}

func gpusOf(p Placed) string {
	all := []string{p.Slice.GPU}
	for _, s := range p.More {
		all = append(all, s.GPU)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestGroups places sessions with several GPUs by MPS beside others: two of them have the same GPUs or none in common,
// no other session has one of these, and as many are placed as the GPUs have room for. A session that comes later moves none.
func TestGroups(t *testing.T) {
	keys := []string{"2060", "3090", "1060", "4090"}
	placed, refused := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 11))
		n, count := 2+r.IntN(2), 2+r.IntN(5)
		gpus := rack("lab", times(count, []string{"l40s", "h200", "v100"}[r.IntN(3)])...)
		key := keys[r.IntN(len(keys))]
		requests := groupOf("pair", 1+r.IntN(12), n, key)
		each := 0
		for singles := []Request{}; ; each++ {
			one := groupOf("pair", each+1, n, key)[each]
			singles = append(singles, one)
			if _, ok := placeOnEach(gpus[:1], singles, squeeze{1, true}); !ok {
				break
			}
		}
		got := Place(gpus, requests)
		if room := each * (count / n); len(got.Placed) != min(room, len(requests)) {
			t.Errorf("seed %d: %d of %d sessions are placed, there is room for %d\n%s", seed, len(got.Placed), len(requests), room, got)
		}
		placed, refused = placed+len(got.Placed), refused+len(requests)-len(got.Placed)
		for i, q := range requests {
			if i%4 == 3 {
				q.Want.GPUs, q.Want.Sharing = 0, []resource.Sharing{resource.SharingMPS, resource.SharingTime, resource.SharingAuto}[r.IntN(3)]
				requests[i] = q
			}
		}
		got = Place(gpus, requests)
		checkGroups(t, gpus, requests, got)
		nowGPUs, now := keep(gpus, requests, got)
		now = append(now, groupOf("late", 1, n, key)...)
		after := Place(nowGPUs, now)
		checkGroups(t, nowGPUs, now, after)
		for _, was := range got.Placed {
			i := slices.IndexFunc(after.Placed, func(p Placed) bool { return p.Address == was.Address })
			if i < 0 || after.Placed[i].Slice != was.Slice || !slices.Equal(after.Placed[i].More, was.More) {
				t.Errorf("seed %d: %s is moved\n%s\n%s", seed, was.Address, got, after)
			}
		}
	}
	t.Logf("%d placed, %d refused", placed, refused)
	if placed < 80 || refused < 50 {
		t.Error("the instances are too alike")
	}
}

func checkGroups(t *testing.T, gpus []GPU, requests []Request, r Result) {
	t.Helper()
	check(t, gpus, requests, r)
	wants := map[resource.Address]Request{}
	for _, q := range requests {
		wants[q.Address] = q
	}
	for _, p := range r.Placed {
		for _, o := range r.Placed {
			mine, its := gpusOf(p), gpusOf(o)
			common := slices.ContainsFunc(strings.Fields(mine), func(gpu string) bool { return strings.Contains(its, gpu) })
			if grouped(wants[p.Address]) && common && (mine != its || !grouped(wants[o.Address])) {
				t.Errorf("%s has %s, and %s has %s\n%s", p.Address, mine, o.Address, its, r)
			}
		}
	}
}
