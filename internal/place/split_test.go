package place

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestHostsApart places random sessions on three hosts at once and on each host alone: the placements are the same,
// however crowded another host is.
func TestHostsApart(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	targets := []string{"2060", "3060", "3090", "1660", "4090"}
	for range 15 {
		var gpus []GPU
		var requests []Request
		alone := Result{}
		for h := range 3 {
			host := fmt.Sprintf("host%d", h)
			its := rack(host, times(1+r.IntN(2), "h200")...)
			var asked []Request
			for i := range 1 + r.IntN(4) {
				asked = append(asked, ask(host, fmt.Sprintf("s%d%d", i, h), 1+r.IntN(2), targets[r.IntN(len(targets))])...)
			}
			gpus, requests = append(gpus, its...), append(requests, asked...)
			one := Place(its, asked)
			alone.Placed, alone.GPUs = append(alone.Placed, one.Placed...), append(alone.GPUs, one.GPUs...)
			alone.Refused = append(alone.Refused, one.Refused...)
		}
		alone.sort(gpus)
		r.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		r.Shuffle(len(gpus), func(i, j int) { gpus[i], gpus[j] = gpus[j], gpus[i] })
		all := Place(gpus, requests)
		check(t, gpus, requests, all)
		if !reflect.DeepEqual(all.Placed, alone.Placed) || !reflect.DeepEqual(all.GPUs, alone.GPUs) || len(all.Refused) != len(alone.Refused) {
			t.Fatalf("together\n%s\neach alone\n%s", all, alone)
		}
	}
}

// TestNamedGPUsApart places sessions of which each names its GPU, and again with one that does not: it takes what they
// leave.
func TestNamedGPUsApart(t *testing.T) {
	gpus := rack("lab", "h200", "h200", "h200")
	var requests []Request
	for i, n := range []int{3, 7, 2} {
		requests = append(requests, with(ask("lab", fmt.Sprintf("on%d", i), n, "2060"), func(q *Request) { q.Want.GPU = gpus[i].UUID })...)
	}
	named := Place(gpus, requests)
	check(t, gpus, requests, named)
	if len(named.Placed) != 12 || len(named.GPUs) != 3 || len(named.Warnings) > 0 {
		t.Error(named)
	}
	if d := divide(gpus, requests); len(d) != 3 {
		t.Errorf("%d divisions", len(d))
	}
	all := join(ask("lab", "any", 9, "2060"), requests)
	open := Place(gpus, all)
	check(t, gpus, all, open)
	if d := divide(gpus, all); len(d) != 1 || len(open.Placed) != 21 || len(open.Refused) > 0 {
		t.Errorf("%d divisions\n%s", len(d), open)
	}
}

// TestOnAnotherGPU places a session that has a slice on another GPU than it names: it moves, also if it is alone on its GPU.
func TestOnAnotherGPU(t *testing.T) {
	gpus := rack("lab", "h200", "h200")
	moves := ask("lab", "moves", 1, "2060")
	kept := Place(gpus[:1], moves).Placed[0].Slice
	moves[0].Kept, moves[0].Want.GPU = &kept, gpus[1].UUID
	for _, requests := range [][]Request{moves, join(moves, ask("lab", "any", 1, "2060"))} {
		r := Place(gpus, requests)
		i := slices.IndexFunc(r.Placed, func(p Placed) bool { return p.Address == moves[0].Address })
		if i < 0 || r.Placed[i].Slice.GPU != gpus[1].UUID || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Text, "it is to run on another GPU") {
			t.Error(r)
		}
	}
}

// TestCostOfHosts compares the memory that fleets allocate with a host for each session: four times as many take about
// four times as much.
func TestCostOfHosts(t *testing.T) {
	allocated := func(n int) uint64 {
		var gpus []GPU
		var requests []Request
		for i := range n {
			host := fmt.Sprintf("host%d", i)
			gpus, requests = append(gpus, rack(host, "h200")...), append(requests, ask(host, host, 1, "2060")...)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if r := Place(gpus, requests); len(r.Placed) != n || len(r.Warnings) > 0 {
			t.Fatal(r)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(1)
	if few, many := allocated(20), allocated(80); many > 6*few {
		t.Errorf("20 hosts allocate %d bytes, 80 hosts %d", few, many)
	}
}
