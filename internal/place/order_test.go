package place

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// A weight is what the order in docs/fleets.md compares of a placement, computed without the code of this package: the
// GPUs in use, the largest error beyond a tolerance, the sums of these errors and of those of the other figures, the size
// of the slices, and the largest and the sum of all errors.
type weight [7]float64

const heavier = 1e-7 // errors differ by less from rounding

func (w weight) plus(o weight) weight {
	for i := range w {
		if i == 1 || i == 5 {
			w[i] = max(w[i], o[i])
		} else {
			w[i] += o[i]
		}
	}
	return w
}

func (w weight) compare(o weight) int {
	for i := range w {
		if w[i] < o[i]-heavier || w[i] > o[i]+heavier {
			return cmp.Compare(w[i], o[i])
		}
	}
	return 0
}

// covers reports whether w is nowhere heavier than o.
func (w weight) covers(o weight) bool {
	for i := range w {
		if w[i] > o[i] {
			return false
		}
	}
	return true
}

// weigh is the weight of one session with a fit, without the GPU and the slice.
func weigh(q Request, f resource.Fit) (w weight) {
	fp32, bandwidth := f.Error(resource.PreferFP32), f.Error(resource.PreferBandwidth)
	err, other := fp32, bandwidth
	switch q.Want.Fit.Prefer {
	case resource.PreferBandwidth:
		err, other = bandwidth, fp32
	case resource.PreferBalanced:
		err, other = f.Error(resource.PreferBalanced), max(fp32, bandwidth)
	}
	if tolerance := q.Want.Fit.Tolerance; err > tolerance+1e-9 || tolerance == 0 {
		w[1], w[2], w[3] = err-tolerance, err-tolerance, other
	}
	w[5], w[6] = err, err
	return w
}

func fitOf(m resource.Model, q Request, profile string, clock int) (f resource.Fit, percent int) {
	if percent, _ = closestPart(m, q, profile, clock); percent > 0 {
		return fit.Parts(m, q.Target, profile)(percent, clock), percent
	}
	return fit.At(m, q.Target, profile, clock), 0
}

// A bin is a slice that a reference gives to sessions.
type bin struct {
	resource.Profile
	kind          resource.Sharing
	free, percent int
}

// frontOf is all weights of these requests on an empty GPU that are not covered by another one.
func frontOf(m resource.Model, requests []Request, limit []float64) (front []weight) {
	keep := func(w weight) {
		if slices.ContainsFunc(front, func(o weight) bool { return o.covers(w) }) {
			return
		}
		front = append(slices.DeleteFunc(front, w.covers), w)
	}
	legal := map[string]bool{}
	for _, clock := range m.ClocksMHz {
		if wholeTogether(m, requests, clock, limit) {
			w := weight{1}
			for _, q := range requests {
				f, percent := fitOf(m, q, "", clock)
				size := 113
				if q.Want.Sharing.Shares() {
					size = max(1, size*q.Target.MemoryMiB/m.MemoryMiB, size*percent/100)
				}
				w = w.plus(weigh(q, f)).plus(weight{4: float64(size)})
			}
			keep(w)
		}
		if !m.MIG() {
			continue
		}
		var bins []bin
		var put func(i int, w weight)
		put = func(i int, w weight) {
			if i == len(requests) {
				var names []string
				for _, b := range bins {
					names = append(names, b.Name)
				}
				slices.Sort(names)
				key := strings.Join(names, " ")
				if _, known := legal[key]; !known {
					legal[key] = packs(m, bins, map[int]bool{}, 0)
				}
				if legal[key] {
					keep(w)
				}
				return
			}
			q := requests[i]
			if q.Want.Sharing == resource.SharingExclusive {
				return
			}
			for j := range bins {
				f, percent := fitOf(m, q, bins[j].Name, clock)
				b := bins[j]
				if b.kind == "" || b.kind != q.Want.Sharing || b.free < q.Target.MemoryMiB || b.percent < percent || f.Error(q.Want.Fit.Prefer) > limit[i] {
					continue
				}
				bins[j].free, bins[j].percent = b.free-q.Target.MemoryMiB, b.percent-percent
				put(i+1, w.plus(weigh(q, f)))
				bins[j] = b
			}
			for _, p := range profilesFor(m, q) {
				f, percent := fitOf(m, q, p.Name, clock)
				if p.MemoryMiB < q.Target.MemoryMiB || f.Error(q.Want.Fit.Prefer) > limit[i] {
					continue
				}
				b := bin{p, "", p.MemoryMiB - q.Target.MemoryMiB, 100 - percent}
				if q.Want.Sharing == resource.SharingTime || q.Want.Sharing == resource.SharingMPS {
					b.kind = q.Want.Sharing
				}
				bins = append(bins, b)
				size := 56*p.ComputeSlices/m.ComputeSlices + 56*p.MemorySlices/m.MemorySlices
				put(i+1, w.plus(weigh(q, f)).plus(weight{4: float64(size)}))
				bins = bins[:len(bins)-1]
			}
		}
		put(0, weight{1})
	}
	return front
}

// packs reports whether the driver has placements for all bins.
func packs(m resource.Model, bins []bin, used map[int]bool, compute int) bool {
	if len(bins) == 0 {
		return true
	}
	p := bins[0].Profile
	same := 0
	for _, b := range bins {
		if b.Name == p.Name {
			same++
		}
	}
	if compute += p.ComputeSlices; compute > m.ComputeSlices || same > p.MaxInstances {
		return false
	}
	for _, start := range p.Starts {
		slots := []int{}
		for s := start; s < start+p.MemorySlices; s++ {
			slots = append(slots, s)
		}
		if slices.ContainsFunc(slots, func(s int) bool { return used[s] }) {
			continue
		}
		for _, s := range slots {
			used[s] = true
		}
		done := packs(m, bins[1:], used, compute)
		for _, s := range slots {
			used[s] = false
		}
		if done {
			return true
		}
	}
	return false
}

// lightest returns the first of all placements in the order; false if there is none within the limits.
func lightest(gpus []GPU, requests []Request, limit []float64) (best weight, found bool) {
	fronts := map[string][]weight{}
	front := func(g int, group []int) []weight {
		key := fmt.Sprint(gpus[g].Model.Name, group)
		if known, is := fronts[key]; is {
			return known
		}
		var together []Request
		var limits []float64
		for _, i := range group {
			together, limits = append(together, requests[i]), append(limits, limit[i])
		}
		fronts[key] = frontOf(gpus[g].Model, together, limits)
		return fronts[key]
	}
	groups := make([][]int, len(gpus))
	var sum func(g int, w weight)
	sum = func(g int, w weight) {
		if g == len(gpus) {
			if !found || w.compare(best) < 0 {
				best, found = w, true
			}
			return
		}
		if len(groups[g]) == 0 {
			sum(g+1, w)
			return
		}
		for _, more := range front(g, groups[g]) {
			sum(g+1, w.plus(more))
		}
	}
	var deal func(i int)
	deal = func(i int) {
		if i == len(requests) {
			sum(0, weight{})
			return
		}
		for g := range gpus {
			groups[g] = append(groups[g], i)
			deal(i + 1)
			groups[g] = groups[g][:len(groups[g])-1]
		}
	}
	deal(0)
	return best, found
}

// weightOf is the weight of a placement.
func weightOf(gpus []GPU, requests []Request, r Result) (w weight) {
	w[0] = float64(len(r.GPUs))
	var seen []resource.Slice
	for _, p := range r.Placed {
		q := requests[slices.IndexFunc(requests, func(q Request) bool { return q.Address == p.Address })]
		m := gpus[slices.IndexFunc(gpus, func(g GPU) bool { return g.UUID == p.Slice.GPU })].Model
		w = w.plus(weigh(q, p.Fit))
		size := 113
		switch profile, _ := m.Profile(p.Slice.Profile); {
		case p.Slice.Whole() && p.Slice.Shared():
			size = max(1, size*q.Target.MemoryMiB/m.MemoryMiB, size*p.Slice.Percent/100)
		case p.Slice.Whole():
		case slices.Contains(seen, p.Slice.Place()):
			size = 0
		default:
			size = 56*profile.ComputeSlices/m.ComputeSlices + 56*profile.MemorySlices/m.MemorySlices
			seen = append(seen, p.Slice.Place())
		}
		w[4] += float64(size)
	}
	return w
}

// leastSlack is the smallest error beyond the limits with which brute force places all requests.
func leastSlack(gpus []GPU, requests []Request, alone map[resource.Address]float64) float64 {
	var slacks []float64
	for i, limit := range limits(requests, alone, 0) {
		q := requests[i]
		for _, g := range gpus {
			for _, p := range append(profilesFor(g.Model, q), resource.Profile{}) {
				for _, clock := range g.Model.ClocksMHz {
					if _, err := closestPart(g.Model, q, p.Name, clock); err > limit {
						slacks = append(slacks, err-limit+1e-9)
					}
				}
			}
		}
	}
	slices.Sort(slacks)
	slacks = append([]float64{0}, slacks...)
	first := sort.Search(len(slacks)-1, func(i int) bool { return fewest(gpus, requests, limits(requests, alone, slacks[i])) > 0 })
	return slacks[first]
}

// TestOrder compares placements of random fleets by MIG, MPS and time slices with the first one in the order that
// docs/fleets.md states, which brute force finds.
func TestOrder(t *testing.T) {
	racks := [][]string{{"h200"}, {"a100-80gb"}, {"h200", "h200"}, {"l40s", "l40s"}, {"a30", "a30"}, {"h200", "l40s"}, {"rtx-4090", "v100"}}
	orderOn(t, racks, 4, sharing)
}

// TestOrderWithoutTolerance does the same with sessions whose errors have to be the least there are.
func TestOrderWithoutTolerance(t *testing.T) {
	racks := [][]string{{"h200"}, {"a100-80gb"}, {"h200", "h200"}, {"a100-80gb", "a100-80gb"}, {"a30", "a30"}}
	orderOn(t, racks, 5, func(_ *rand.Rand, all []Request) []Request {
		for i := range all {
			all[i].Want.Fit.Tolerance = 0
		}
		return all
	})
}

func orderOn(t *testing.T, racks [][]string, most int, vary func(*rand.Rand, []Request) []Request) {
	t.Helper()
	equal, worse, beyond, refused, squeezed := 0, 0, 0, 0, 0
	for seed := uint64(0); equal+worse < 300; seed++ {
		r := rand.New(rand.NewPCG(seed, 5))
		gpus := rack("lab", racks[r.IntN(len(racks))]...)
		requests := vary(r, randomRequests(r, 2+r.IntN(most-1), 1+r.IntN(most-1)))
		got := Place(gpus, requests)
		check(t, gpus, requests, got)
		alone := map[resource.Address]float64{}
		for _, p := range got.Placed {
			q := requests[slices.IndexFunc(requests, func(q Request) bool { return q.Address == p.Address })]
			alone[p.Address] = p.Alone.Error(q.Want.Fit.Prefer)
		}
		if len(got.Refused) > 0 {
			refused++
			continue
		}
		best, found := lightest(gpus, requests, limits(requests, alone, 0))
		if !found && withinLimits(requests, got, alone) { // by smaller parts of the SMs than those that come closest
			squeezed++
			if !slices.ContainsFunc(requests, func(q Request) bool { return q.Want.Sharing == resource.SharingMPS }) {
				t.Errorf("seed %d: brute force finds nothing within the tolerances\n%s", seed, got)
			}
			continue
		}
		if !found { // some exceed their tolerances
			beyond++
			best, _ = lightest(gpus, requests, limits(requests, alone, leastSlack(gpus, requests, alone)))
		}
		switch mine := weightOf(gpus, requests, got); mine.compare(best) {
		case 0:
			equal++
		case 1:
			worse++
			t.Errorf("seed %d: %.12f, and there is %.12f\n%s", seed, mine, best, got)
		default:
			t.Errorf("seed %d: %v is lighter than all there are, %v\n%s", seed, mine, best, got)
		}
	}
	t.Logf("%d equal, %d worse; %d of them exceed their tolerances; %d more are refused, %d have smaller parts by MPS", equal, worse, beyond, refused, squeezed)
}

// withinLimits reports whether no session has more than its tolerance over its error alone.
func withinLimits(requests []Request, r Result, alone map[resource.Address]float64) bool {
	for _, p := range r.Placed {
		q := requests[slices.IndexFunc(requests, func(q Request) bool { return q.Address == p.Address })]
		if p.Fit.Error(q.Want.Fit.Prefer) > alone[p.Address]+q.Want.Fit.Tolerance+1e-9 {
			return false
		}
	}
	return true
}
