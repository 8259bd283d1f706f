package place

import (
	"fmt"
	"slices"

	"cosplay/internal/resource"
)

// illegal checks a result against the rules, independently of the code under test.
func illegal(gpus []GPU, requests []Request, r Result) []string {
	var problems []string
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }

	byAddress := map[resource.Address]Request{}
	for _, q := range requests {
		byAddress[q.Address] = q
	}
	seen := map[resource.Address]bool{}
	var placed []Placed // by device
	for _, p := range r.Placed {
		on := map[string]bool{}
		for _, s := range append([]resource.Slice{p.Slice}, p.More...) {
			one := p
			one.Slice = s
			placed, on[s.GPU] = append(placed, one), true
		}
		if n := byAddress[p.Address].Want.Devices(); len(p.More)+1 != n || len(on) != n {
			complain("%s has %d devices on %d GPUs", p.Address, len(p.More)+1, len(on))
		}
		if q := byAddress[p.Address]; q.Kept != nil && (*q.Kept != p.Slice || !slices.Equal(q.KeptMore, p.More)) {
			complain("%s was moved", p.Address)
		}
	}
	for _, p := range r.Placed {
		if seen[p.Address] {
			complain("%s is placed twice", p.Address)
		}
		seen[p.Address] = true
	}
	for _, refusal := range r.Refused {
		if refusal.What == "" || refusal.Fix == "" {
			complain("refusal of %v without reason or remedy", refusal.Addresses)
		}
		for _, a := range refusal.Addresses {
			if seen[a] {
				complain("%s is placed and refused", a)
			}
			seen[a] = true
		}
	}
	for a := range byAddress {
		if !seen[a] {
			complain("%s is lost", a)
		}
	}
	setups := 0
	for _, g := range gpus {
		var here []Placed
		for _, p := range placed {
			if p.Slice.Host == g.Host && p.Slice.GPU == g.UUID {
				here = append(here, p)
			}
		}
		i := slices.IndexFunc(r.GPUs, func(s Setup) bool { return s.Host == g.Host && s.UUID == g.UUID })
		if (i >= 0) != (len(here) > 0) {
			complain("%s has %d sessions and set-up %v", g.UUID, len(here), i >= 0)
		}
		if i >= 0 {
			setups++
			problems = append(problems, illegalGPU(g, byAddress, here, r.GPUs[i].Settings)...)
		}
	}
	if setups != len(r.GPUs) {
		complain("%d set-ups for %d GPUs", len(r.GPUs), setups)
	}
	return problems
}

func illegalGPU(g GPU, requests map[resource.Address]Request, here []Placed, set resource.Settings) []string {
	var problems []string
	complain := func(format string, args ...any) {
		problems = append(problems, g.UUID+": "+fmt.Sprintf(format, args...))
	}
	taken, compute, instances := map[int]string{}, 0, map[string]int{}
	occupy := func(who string, s resource.Slice) {
		p, ok := g.Model.Profile(s.Profile)
		if !ok || !slices.Contains(p.Starts, s.Start) || p.MemorySlices != s.Size || !slices.Contains(g.Model.ComputeStarts(s.Profile), s.ComputeStart) {
			complain("%s has no legal slice: %+v", who, s)
		}
		for slot := s.Start; slot < s.Start+s.Size; slot++ {
			if taken[slot] != "" || slot >= g.Model.MemorySlices {
				complain("%s and %s in slot %d", who, taken[slot], slot)
			}
			taken[slot] = who
		}
		compute += p.ComputeSlices
		instance := s.Instance().Profile
		if instances[instance]++; instances[instance] > p.MaxInstances {
			complain("%d x %s", instances[instance], instance)
		}
	}
	for _, s := range g.Foreign {
		occupy("foreign", s.Slice)
	}
	mig := g.MIG
	if set.Has(resource.MIGMode) {
		mig = set.Is(resource.MIGMode, resource.On)
		if g.Fixed[resource.MIGMode] || g.Busy || len(g.Foreign) > 0 {
			complain("MIG mode may not be set")
		}
	}
	clock := clockOf(g, set, complain)
	if set.Has(resource.PowerLimit) && (g.Fixed[resource.PowerLimit] || set.Value(resource.PowerLimit) < g.Model.PowerMinMW || set.Value(resource.PowerLimit) > g.Model.PowerDefaultMW) {
		complain("power %d", set.Value(resource.PowerLimit))
	}
	shared, percent := map[resource.Slice]int{}, map[resource.Slice]int{}
	for _, p := range here {
		q := requests[p.Address]
		misplaced(g, q, p, clock, complain)
		if p.Slice.Shared() {
			shared[p.Slice.Instance()] += q.Target.MemoryMiB
			percent[p.Slice.Instance()] += p.Slice.Percent
		}
		if p.Slice.Whole() {
			if mine := func(o Placed) bool { return !p.Slice.Beside(o.Slice) }; len(here) > 1 && slices.ContainsFunc(here, mine) || len(g.Foreign) > 0 || mig {
				complain("%s is not alone", p.Address)
			}
			continue
		}
		if !mig {
			complain("%s has a slice without MIG mode", p.Address)
		}
		exists := func(o Placed) bool { return requests[o.Address].Kept != nil && o.Slice.Beside(p.Slice) }
		if g.NoSlices && q.Kept == nil && !slices.ContainsFunc(here, exists) {
			complain("%s needs a slice that may not be made", p.Address)
		}
		for _, o := range here {
			if o.Address != p.Address && o.Slice.Instance() == p.Slice.Instance() && !o.Slice.Beside(p.Slice) &&
				(o.Slice.Crosses(p.Slice) || o.Slice.Sharing != resource.SharingCompute || p.Slice.Sharing != resource.SharingCompute) {
				complain("%s and %s are in one GPU instance, as %s and %s", p.Address, o.Address, p.Slice, o.Slice)
			}
		}
		together := func(o Placed) bool {
			return o.Slice.Beside(p.Slice) || o.Slice.Divides() && o.Slice.Instance() == p.Slice.Instance()
		}
		if i := slices.IndexFunc(here, together); i < 0 || here[i].Address == p.Address {
			occupy(p.Address.String(), p.Slice)
		}
	}
	for at, mib := range shared {
		has := g.Model.MemoryMiB
		if p, ok := g.Model.Profile(at.Profile); ok {
			has = p.MemoryMiB
		}
		if mib > has && !slices.ContainsFunc(here, func(p Placed) bool { return p.Slice.Place() == at && p.Slice.Oversubscribed }) {
			complain("%d MiB of %d are given in %s", mib, has, at)
		}
	}
	for at, given := range percent {
		if given > 100 {
			complain("%d %% of the SMs of %s are given", given, at)
		}
	}
	if compute > g.Model.ComputeSlices {
		complain("%d compute slices", compute)
	}
	return problems
}

// clockOf returns the SM clock in MHz that the settings of a GPU lead to.
func clockOf(g GPU, set resource.Settings, complain func(string, ...any)) int {
	switch {
	case g.FixedClockMHz != nil && set.Has(resource.SMClock):
		complain("clock may not be set")
	case g.FixedClockMHz != nil:
		return *g.FixedClockMHz
	case !set.Has(resource.SMClock):
		complain("clock is not set")
	case set.Value(resource.SMClock) != 0:
		if !slices.Contains(g.Model.ClocksMHz, set.Value(resource.SMClock)) {
			complain("no clock %d", set.Value(resource.SMClock))
		}
		return set.Value(resource.SMClock)
	}
	return g.Model.MaxClockMHz()
}

// misplaced reports a session whose placement differs from its request, or whose description differs from its
// placement.
func misplaced(g GPU, q Request, p Placed, clock int, complain func(string, ...any)) {
	if q.Want.Host != g.Host || q.Want.GPU != "" && q.Want.GPU != g.UUID {
		complain("%s is on the wrong GPU", p.Address)
	}
	may := map[resource.Sharing]bool{resource.SharingAuto: !p.Slice.Shared(), resource.SharingMIG: !p.Slice.Whole(),
		resource.SharingExclusive: p.Slice.Whole() && !p.Slice.Shared(), resource.SharingTime: p.Slice.Sharing == resource.SharingTime, resource.SharingMPS: p.Slice.Sharing == resource.SharingMPS,
		resource.SharingCompute: !p.Slice.Whole() && (p.Slice.Sharing == resource.SharingCompute) == p.Slice.Divides()}
	if !may[q.Want.Sharing] {
		complain("%s wants %q and has %s", p.Address, q.Want.Sharing, p.Slice)
	}
	if q.Want.Slice != "" && q.Want.Slice != p.Slice.Profile && q.Want.Slice != fmt.Sprintf("%s@%d", p.Slice.Profile, p.Slice.Start) {
		complain("%s wants a %s and has %s", p.Address, q.Want.Slice, p.Slice)
	}
	if q.Kept != nil && *q.Kept != p.Slice && !slices.Contains(q.KeptMore, p.Slice) {
		complain("%s was moved", p.Address)
	}
	if len(p.More) > 0 { // the figures are of its worst device
		return
	}
	if p.Fit.ClockMHz != clock || p.Fit.Profile != p.Slice.Profile {
		complain("%s has the figures of %s at %d MHz", p.Address, p.Fit.Profile, p.Fit.ClockMHz)
	}
	if p.Fit.Got.MemoryMiB < q.Target.MemoryMiB {
		complain("%s has %d MiB of %d", p.Address, p.Fit.Got.MemoryMiB, q.Target.MemoryMiB)
	}
	if q.Want.Fit.MaxError != nil && q.Kept == nil && p.Fit.Error(q.Want.Fit.Prefer) > *q.Want.Fit.MaxError+1e-8 {
		complain("%s is too far off", p.Address)
	}
}
