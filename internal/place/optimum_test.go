package place

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// limits returns the largest error that sharing may cause for each request.
func limits(requests []Request, alone map[resource.Address]float64, slack float64) []float64 {
	var all []float64
	for _, q := range requests {
		limit := alone[q.Address] + q.Want.Fit.Tolerance + slack
		if q.Want.Fit.MaxError != nil {
			limit = min(limit, *q.Want.Fit.MaxError)
		}
		all = append(all, limit+1e-8)
	}
	return all
}

// wholeTogether reports whether these requests may have the whole of an empty GPU at a clock: one alone, or all by time
// slices, or all by MPS.
func wholeTogether(m resource.Model, requests []Request, clock int, limit []float64) bool {
	sum, percent, sharers := 0, 0, map[resource.Sharing]int{}
	for i, q := range requests {
		sum += q.Target.MemoryMiB
		sharers[q.Want.Sharing]++
		part, err := closestPart(m, q, "", clock)
		percent += part
		if err > limit[i] {
			return false
		}
	}
	alone := len(requests) == 1 && requests[0].Want.Sharing != resource.SharingMIG && requests[0].Want.Sharing != resource.SharingCompute && requests[0].Want.Slice == ""
	return sum <= m.MemoryMiB && percent <= 100 && (alone || max(sharers[resource.SharingTime], sharers[resource.SharingMPS]) == len(requests))
}

type partKey struct {
	model, profile string
	want           resource.Envelope
	prefer         resource.Preference
	clock          int
}

type part struct {
	percent int
	err     float64
}

var parts = map[partKey]part{}

// closestPart returns the percentage of the SMs that a request gets of a profile or of the whole GPU, and its error.
func closestPart(m resource.Model, q Request, profile string, clock int) (percent int, err float64) {
	prefer := q.Want.Fit.Prefer
	if q.Want.Sharing != resource.SharingMPS || strings.HasPrefix(m.ComputeCapability, "6.") {
		return 0, fit.At(m, q.Target, profile, clock).Error(prefer)
	}
	key := partKey{m.Name, profile, q.Target.Envelope(), prefer, clock}
	if _, known := parts[key]; !known {
		percent, err := tryParts(m, q, profile, clock)
		parts[key] = part{percent, err}
	}
	return parts[key].percent, parts[key].err
}

func tryParts(m resource.Model, q Request, profile string, clock int) (part int, err float64) {
	prefer := q.Want.Fit.Prefer
	err = math.Inf(1)
	second := err
	for percent := 1; percent <= 100; percent++ {
		f := fit.Parts(m, q.Target, profile)(percent, clock)
		other := max(f.Error(resource.PreferFP32), f.Error(resource.PreferBandwidth))
		switch prefer {
		case resource.PreferFP32:
			other = f.Error(resource.PreferBandwidth)
		case resource.PreferBandwidth:
			other = f.Error(resource.PreferFP32)
		}
		const same = 5e-10
		if e := f.Error(prefer); e < err-same || e < err+same && other < second-same {
			part, err, second = percent, e, other
		}
	}
	return part, err
}

// fitsTogether tries every clock, profile and start for these requests on an empty GPU.
func fitsTogether(m resource.Model, requests []Request, limit []float64) bool {
	var profiles [][]resource.Profile
	instanceOf := map[string]string{}
	for _, q := range requests {
		profiles = append(profiles, profilesFor(m, q))
		for _, p := range profiles[len(profiles)-1] {
			instanceOf[p.Name] = resource.Slice{Profile: p.Name}.Instance().Profile
		}
	}
	for _, clock := range m.ClocksMHz {
		known := make([]map[string]part, len(requests))
		closest := func(i int, profile string) part {
			if _, is := known[i][profile]; !is {
				if known[i] == nil {
					known[i] = map[string]part{}
				}
				percent, err := closestPart(m, requests[i], profile, clock)
				known[i][profile] = part{percent, err}
			}
			return known[i][profile]
		}
		within := func(i int, profile string) bool { return closest(i, profile).err <= limit[i] }
		if wholeTogether(m, requests, clock, limit) {
			return true
		}
		used, instances := map[int]bool{}, map[string]int{}
		type open struct {
			profile     string
			kind        resource.Sharing
			free, seats int
			percent     int
		}
		var shared []open // slices of sessions by time slices or by MPS, and GPU instances of sessions with compute instances
		var put func(i, compute int) bool
		put = func(i, compute int) bool {
			if i == len(requests) {
				return true
			}
			kind := requests[i].Want.Sharing
			if requests[i].Want.Devices() > 1 || kind == resource.SharingExclusive {
				return false
			}
			for j := range shared {
				may := slices.ContainsFunc(profiles[i], func(p resource.Profile) bool { return p.Name == shared[j].profile })
				needs := requests[i].Target.MemoryMiB
				percent := closest(i, shared[j].profile).percent
				if !may || kind != shared[j].kind || shared[j].free < needs || shared[j].percent < percent || shared[j].seats == 0 || !within(i, shared[j].profile) {
					continue
				}
				shared[j].free -= needs
				shared[j].percent -= percent
				shared[j].seats--
				done := put(i+1, compute)
				shared[j].free += needs
				shared[j].percent += percent
				shared[j].seats++
				if done {
					return true
				}
			}
			for _, p := range profiles[i] {
				instance := instanceOf[p.Name]
				if p.MemoryMiB < requests[i].Target.MemoryMiB || compute+p.ComputeSlices > m.ComputeSlices ||
					instances[instance] == p.MaxInstances || !within(i, p.Name) {
					continue
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
					instances[instance]++
					shares := kind == resource.SharingTime || kind == resource.SharingCompute || kind == resource.SharingMPS
					if shares {
						seats := math.MaxInt
						if kind == resource.SharingCompute { // also of one that fills its GPU instance
							seats = len(m.ComputeStarts(p.Name))
						}
						shared = append(shared, open{p.Name, kind, p.MemoryMiB - requests[i].Target.MemoryMiB, seats - 1, 100 - closest(i, p.Name).percent})
					}
					done := put(i+1, compute+p.ComputeSlices)
					instances[instance]--
					if shares {
						shared = shared[:len(shared)-1]
					}
					for _, s := range slots {
						used[s] = false
					}
					if done {
						return true
					}
				}
			}
			return false
		}
		if put(0, 0) {
			return true
		}
	}
	return false
}

// profilesFor returns the profiles that a request may have: of GPU instances, and of compute instances in them.
func profilesFor(m resource.Model, q Request) (all []resource.Profile) {
	if q.Want.Slice != "" {
		p, ok := m.Profile(q.Want.Slice)
		if !ok {
			return nil
		}
		return []resource.Profile{p}
	}
	all = slices.Clone(m.Profiles)
	switch q.Want.Sharing {
	case resource.SharingCompute:
		for _, p := range m.Profiles {
			all = append(all, m.Divisions(p)...)
		}
	case resource.SharingAuto, resource.SharingMIG:
		all = append(all, fit.Closer(m, q.Target, q.Want.Fit, m.ClocksMHz)...)
	}
	return all
}

// divided gives the sessions of each class a compute instance, a profile by name, or the choice.
func divided(r *rand.Rand, requests []Request) []Request {
	type want struct {
		sharing resource.Sharing
		slice   string
	}
	wants := map[string]want{}
	for i := range requests {
		name := requests[i].Address.Name
		if _, chosen := wants[name]; !chosen {
			kind := []resource.Sharing{resource.SharingCompute, resource.SharingCompute, resource.SharingCompute, resource.SharingAuto, resource.SharingTime}[r.IntN(5)]
			slice := ""
			if kind != resource.SharingTime {
				slice = []string{"", "", "", "1c.2g.35gb", "1c.3g.71gb", "2c.4g.71gb", "1c.3g.40gb", "2g.12gb", "2c.4g.24gb"}[r.IntN(9)]
			}
			wants[name] = want{kind, slice}
		}
		requests[i].Want.Sharing, requests[i].Want.Slice = wants[name].sharing, wants[name].slice
	}
	return requests
}

// sharing gives the sessions of each class a random kind of sharing.
func sharing(r *rand.Rand, requests []Request) []Request {
	kinds := map[string]resource.Sharing{}
	for i := range requests {
		name := requests[i].Address.Name
		if _, chosen := kinds[name]; !chosen {
			kinds[name] = []resource.Sharing{resource.SharingTime, resource.SharingTime, resource.SharingMPS, resource.SharingMPS, resource.SharingAuto, resource.SharingMIG, resource.SharingExclusive}[r.IntN(7)]
		}
		requests[i].Want.Sharing = kinds[name]
	}
	return requests
}

// fewest returns the smallest number of GPUs for all requests, by trying every distribution; 0 if they do not fit.
func fewest(gpus []GPU, requests []Request, limit []float64) int {
	known := map[string]bool{}
	groups := make([][]int, len(gpus))
	fits := func(g int) bool {
		key := fmt.Sprint(gpus[g].Model.Name, groups[g])
		if answer, ok := known[key]; ok {
			return answer
		}
		var together []Request
		var limits []float64
		for _, i := range groups[g] {
			together, limits = append(together, requests[i]), append(limits, limit[i])
		}
		known[key] = fitsTogether(gpus[g].Model, together, limits)
		return known[key]
	}
	best := math.MaxInt
	var deal func(i int)
	deal = func(i int) {
		used := 0
		for _, group := range groups {
			if len(group) > 0 {
				used++
			}
		}
		if used >= best {
			return
		}
		if i == len(requests) {
			best = used
			return
		}
		for g := range gpus {
			if slices.ContainsFunc(groups[g], func(o int) bool { return requests[o].Address == requests[i].Address }) {
				continue // another device of the session
			}
			groups[g] = append(groups[g], i)
			if fits(g) {
				deal(i + 1)
			}
			groups[g] = groups[g][:len(groups[g])-1]
		}
	}
	deal(0)
	if best == math.MaxInt {
		return 0
	}
	return best
}

func randomRequests(r *rand.Rand, n, kinds int) []Request {
	targets := catalog.Targets()
	var all []Request
	for k := range kinds {
		chosen := targets[r.IntN(len(targets))]
		options := resource.DefaultFit()
		switch r.IntN(6) {
		case 0:
			options.Tolerance = 0
		case 1:
			options.Tolerance = 0.3
		case 2:
			options.Prefer = resource.PreferBandwidth
		case 3:
			most := 0.5
			options.MaxError = &most
		}
		for range 1 + r.IntN(n) {
			all = append(all, Request{
				Address: resource.Nth(string(rune('a'+k)), len(all)),
				Want:    resource.Request{Host: "lab", Target: chosen.Key, Fit: options},
				Target:  chosen,
			})
		}
	}
	return all[:min(len(all), n)]
}

// TestAsFewGPUsAsThereCanBe compares random sessions with brute force.
func TestAsFewGPUsAsThereCanBe(t *testing.T) {
	racks := [][]string{{"h200", "h200", "h200"}, {"a100-80gb", "a100-80gb", "a100-80gb"}, {"a30", "a30", "a30"}, {"h200", "a30", "a100-80gb"}, {"h200", "l40s", "h200"}}
	fewestOn(t, racks, 10, func(_ *rand.Rand, all []Request) []Request { return all })
}

// TestAsFewSharedGPUs does the same with sessions that share whole GPUs beside others.
func TestAsFewSharedGPUs(t *testing.T) {
	racks := [][]string{{"l40s", "l40s", "l40s"}, {"rtx-4090", "v100", "t4"}, {"h200", "l40s", "a100-40gb"}, {"h200", "h200", "h200"}, {"a30", "l40s", "a30"}}
	fewestOn(t, racks, 10, sharing)
}

// TestAsFewGPUsInSeveral does the same with sessions that have several GPUs.
func TestAsFewGPUsInSeveral(t *testing.T) {
	racks := [][]string{times(4, "l40s"), times(4, "v100"), times(4, "a100-40gb"), times(3, "h200"), times(4, "h200")}
	fewestOn(t, racks, 3, func(r *rand.Rand, all []Request) []Request { return several(r, all[:min(len(all), 5)]) })
}

// several gives the sessions of each class a random number of GPUs.
func several(r *rand.Rand, all []Request) []Request {
	all = sharing(r, all)
	gpus := map[string]int{}
	for i := range all {
		want := &all[i].Want
		if _, chosen := gpus[all[i].Address.Name]; !chosen {
			gpus[all[i].Address.Name] = r.IntN(4)
		}
		if want.Sharing != resource.SharingMIG && want.Sharing != resource.SharingMPS { // TestGroups has the latter
			want.GPUs = gpus[all[i].Address.Name]
		}
	}
	return all
}

// TestAsFewGPUsForComputeInstances does the same with sessions whose compute instances share GPU instances.
func TestAsFewGPUsForComputeInstances(t *testing.T) {
	racks := [][]string{{"h200", "h200", "h200"}, {"a100-80gb", "a100-80gb"}, {"a30", "a30", "a30"}, {"h200", "a30", "a100-80gb"}}
	fewestOn(t, racks, 3, func(r *rand.Rand, all []Request) []Request { return divided(r, all[:min(len(all), 5)]) })
}

// fewestOn compares random sessions, some of which have to exceed their tolerances.
func fewestOn(t *testing.T, racks [][]string, beyond int, vary func(*rand.Rand, []Request) []Request) {
	t.Helper()
	strict, relaxed, refused := 0, 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		gpus := rack("lab", racks[r.IntN(len(racks))]...)
		requests := vary(r, randomRequests(r, 1+r.IntN(7), 1+r.IntN(4)))
		got := Place(gpus, requests)
		check(t, gpus, requests, got)

		requests = devices(requests)
		alone := map[resource.Address]float64{}
		for _, p := range got.Placed {
			q := requests[slices.IndexFunc(requests, func(q Request) bool { return q.Address == p.Address })]
			alone[p.Address] = p.Alone.Error(q.Want.Fit.Prefer)
		}
		if len(got.Refused) > 0 {
			refused++
			if n := fewest(gpus, requests, limits(requests, alone, 1000)); n > 0 {
				t.Errorf("seed %d: %d GPUs take all\n%s", seed, n, got)
			}
			continue
		}
		switch n := fewest(gpus, requests, limits(requests, alone, 0)); n {
		case 0:
			relaxed++
		case len(got.GPUs):
			strict++
		default:
			t.Errorf("seed %d: %d GPUs, and %d do\n%s", seed, len(got.GPUs), n, got)
		}
	}
	t.Logf("%d at the tolerances, %d beyond, %d refused", strict, relaxed, refused)
	if strict < 100 || relaxed < beyond || refused < 10 {
		t.Errorf("the instances are too alike")
	}
}

// TestAloneIsTheBestFit compares with the search for one session.
func TestAloneIsTheBestFit(t *testing.T) {
	for _, host := range catalog.Hosts() {
		for _, want := range catalog.Targets() {
			for _, prefer := range []resource.Preference{resource.PreferFP32, resource.PreferBandwidth, resource.PreferBalanced} {
				for _, tolerance := range []float64{0, 0.1} {
					options := resource.FitOptions{Prefer: prefer, Tolerance: tolerance}
					gpus := []GPU{{GPU: resource.GPU{Host: "lab", UUID: "GPU-0", Model: host.Model}}}
					request := Request{Address: resource.One("a"), Want: resource.Request{Host: "lab", Target: want.Key, Fit: options}, Target: want}
					got := Place(gpus, []Request{request})
					best, err := fit.Best(host.Model, want, options)
					switch {
					case err != nil && len(got.Refused) == 1:
					case err == nil && len(got.Placed) == 1 && got.Placed[0].Fit == best && got.Placed[0].Alone == best:
					default:
						t.Errorf("%s as %s, %+v: best is %+v, %v; got\n%s", host.Key, want.Key, options, best, err, got)
					}
				}
			}
		}
	}
}

// TestNoGPUTooMany places more sessions than brute force can handle and requires a proof of optimality: as many GPUs
// as the bound states, or a search that completed. With many hundred sessions, one GPU may remain unproven.
func TestNoGPUTooMany(t *testing.T) {
	exact, searched, unproved := 0, 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 9))
		each := []int{4, 8, 40, 200}[seed%4]
		gpus, requests := rack("lab", times(10*each, "h200")...), compatible(r, each)
		f := newFleet(gpus, requests, roomy, nil)
		f.settle()
		f.measure()
		demand := make([]int, len(f.classes))
		for i, c := range f.classes {
			demand[i] = len(c.waiting)
		}
		c := f.newPacker(f.kinds(), 0).newCover(demand)
		least, _ := c.least(demand, c.free())
		got := int64(len(Place(gpus, requests).GPUs))
		if got == least {
			exact++
			continue
		}
		c.best, c.found, c.cost = nil, true, cost{gpusUsed: got}
		c.search(demand, c.free(), nil, cost{})
		switch {
		case c.best != nil || got > least+1 || c.visits > maxVisits && got < 100:
			t.Errorf("seed %d: %d sessions on %d GPUs, %d may do", seed, len(requests), got, least)
		case c.visits > maxVisits:
			unproved++
		default:
			searched++
		}
	}
	t.Logf("%d as the bound, %d proved by search, %d unproved", exact, searched, unproved)
	if unproved > 2 {
		t.Errorf("%d are unproved", unproved)
	}
}

// compatible makes five kinds of session, chosen so that many can share a clock.
func compatible(r *rand.Rand, each int) []Request {
	var all []Request
	for k := range 5 {
		made := target("2060")
		made.Key = string(rune('a' + k))
		sms := []int{16, 26, 32, 60, 64, 132}[r.IntN(6)]
		made.FP32TFLOPS = 0.256 * float64(sms) * (1.3 + 0.6*r.Float64())
		made.MemoryMiB = []int{8000, 15000, 30000}[r.IntN(3)]
		for i := range each + r.IntN(each) {
			all = append(all, Request{
				Address: resource.Nth(made.Key, i),
				Want:    resource.Request{Host: "lab", Target: made.Key, Fit: resource.FitOptions{Prefer: resource.PreferFP32, Tolerance: 0.2}},
				Target:  made,
			})
		}
	}
	return all
}
