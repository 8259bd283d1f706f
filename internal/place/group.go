package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// A group is the GPUs of sessions with several devices by MPS. A program uses one daemon, which serves the whole group:
// its sessions have all of its GPUs, and no other session has one of them, so that the daemon stays while they come and
// go.
type group struct {
	gpus     []GPU // by index
	requests []Request
	results  []Result // by GPU
}

func grouped(r Request) bool { return r.Want.Sharing == resource.SharingMPS && r.Want.Devices() > 1 }

// placeGroups places sessions with several devices by MPS, and the others on the GPUs that they leave.
func placeGroups(gpus []GPU, requests []Request, by squeeze) Result {
	if !slices.ContainsFunc(requests, grouped) {
		return placeDevices(gpus, requests, by)
	}
	var others, waiting []Request
	var groups []*group
	taken := map[resource.GPUKey]bool{} // by sessions that stay on them
	ordered := slices.Clone(requests)
	slices.SortStableFunc(ordered, func(a, b Request) int { return a.Address.Compare(b.Address) })
	for _, r := range ordered {
		if !grouped(r) {
			others = append(others, r)
			for _, at := range r.kept() {
				taken[at.On()] = true
			}
			continue
		}
		switch on, stays := keptOn(gpus, r); {
		case !stays || !joinGroup(&groups, on, r, by):
			r.Kept, r.KeptMore = nil, nil
			waiting = append(waiting, r)
		}
	}
	free := slices.DeleteFunc(slices.Clone(gpus), func(g GPU) bool {
		return taken[resource.GPUKey{Host: g.Host, UUID: g.UUID}] || slices.ContainsFunc(groups, func(one *group) bool { return one.has(g) })
	})
	var refused prose.Groups[Refusal]
	for _, r := range waiting {
		if slices.ContainsFunc(groups, func(one *group) bool { return one.add(r, by) }) {
			continue
		}
		on, why := choose(free, r, by)
		if why.What != "" || !joinGroup(&groups, on, r, by) {
			refused.Add(why.What, Refusal{Addresses: []resource.Address{r.Address}, Advice: why})
			continue
		}
		free = slices.DeleteFunc(free, groups[len(groups)-1].has)
	}
	rest := slices.DeleteFunc(slices.Clone(gpus), func(g GPU) bool { return slices.ContainsFunc(groups, func(one *group) bool { return one.has(g) }) })
	result := placeDevices(rest, others, by)
	for _, one := range groups {
		one.addTo(&result)
	}
	for _, what := range refused.Texts {
		one := refused.Of[what][0]
		one.Addresses = prose.Each(refused.Of[what], func(r Refusal) resource.Address { return r.Addresses[0] })
		result.Refused = append(result.Refused, one)
	}
	result.sort(gpus)
	return result
}

// keptOn returns the GPUs that a session has; false if one of them is not there, or if it has none yet.
func keptOn(gpus []GPU, r Request) (on []GPU, stays bool) {
	on = slices.DeleteFunc(slices.Clone(gpus), func(g GPU) bool { return r.keptAt(g) == nil })
	return on, r.Kept != nil && len(on) == r.Want.Devices()
}

// kept are the slices that a session has and stays in.
func (r Request) kept() []resource.Slice {
	if r.Kept == nil {
		return nil
	}
	return append([]resource.Slice{*r.Kept}, r.KeptMore...)
}

// keptAt returns the slice that a session has on a GPU; nil for none.
func (r Request) keptAt(g GPU) *resource.Slice {
	for _, s := range r.kept() {
		if s.Host == g.Host && s.GPU == g.UUID {
			return &s
		}
	}
	return nil
}

func (g *group) has(o GPU) bool {
	return slices.ContainsFunc(g.gpus, func(one GPU) bool { return one.Host == o.Host && one.UUID == o.UUID })
}

// joinGroup adds a session to the group with these GPUs, which is made if it does not exist.
func joinGroup(groups *[]*group, on []GPU, r Request, by squeeze) bool {
	for _, g := range *groups {
		if len(g.gpus) == len(on) && !slices.ContainsFunc(on, func(o GPU) bool { return !g.has(o) }) {
			return g.add(r, by)
		}
		if slices.ContainsFunc(on, g.has) {
			return false
		}
	}
	fresh := &group{gpus: slices.Clone(on)}
	slices.SortFunc(fresh.gpus, func(a, b GPU) int { return cmp.Compare(a.Index, b.Index) })
	if !fresh.add(r, by) {
		return false
	}
	*groups = append(*groups, fresh)
	return true
}

// add adds a session to the group if each GPU has room for it.
func (g *group) add(r Request, by squeeze) bool {
	if r.Want.Devices() != len(g.gpus) || r.Want.Host != g.gpus[0].Host {
		return false
	}
	all := append(slices.Clone(g.requests), r)
	results, ok := placeOnEach(g.gpus, all, by)
	if ok {
		g.requests, g.results = all, results
	}
	return ok
}

// placeOnEach places a device of each session on each of the GPUs.
func placeOnEach(gpus []GPU, requests []Request, by squeeze) (results []Result, ok bool) {
	for _, gpu := range gpus {
		var devices []Request
		for _, r := range requests {
			r.Kept, r.KeptMore, r.single = r.keptAt(gpu), nil, true
			devices = append(devices, r)
		}
		result := newFleet([]GPU{gpu}, devices, by, nil).place()
		if len(result.Refused) > 0 {
			return nil, false
		}
		results = append(results, result)
	}
	return results, true
}

// choose returns GPUs for a new group: of the model that comes closest to the target, and has enough.
func choose(free []GPU, r Request, by squeeze) (on []GPU, why prose.Advice) {
	models, closest := map[string][]GPU{}, ""
	errors := map[string]float64{}
	for _, g := range free {
		results, ok := placeOnEach([]GPU{g}, []Request{r}, by)
		if g.Host != r.Want.Host || !ok {
			continue
		}
		name := g.Model.Name
		models[name], errors[name] = append(models[name], g), results[0].Placed[0].Fit.Error(r.Want.Fit.Prefer)
		if n := len(models[name]); n == r.Want.Devices() && (closest == "" || errors[name] < errors[closest]) {
			closest = name
		}
	}
	if closest == "" {
		return nil, prose.Advice{What: fmt.Sprintf("%s by MPS needs %d GPUs of one model that no other session has, or that sessions by MPS on the same %d GPUs leave room on", r.Target.ShortName(), r.Want.Devices(), r.Want.Devices()),
			Fix: `sharing = "time-slice", fewer gpus, or a smaller target`}
	}
	on = models[closest]
	slices.SortFunc(on, func(a, b GPU) int { return cmp.Compare(a.Index, b.Index) })
	return on[:r.Want.Devices()], why
}

// addTo adds the sessions and the GPUs of the group to a placement.
func (g *group) addTo(r *Result) {
	for _, request := range g.requests {
		of := func(result Result) Placed {
			return result.Placed[slices.IndexFunc(result.Placed, func(p Placed) bool { return p.Address == request.Address })]
		}
		placed := of(g.results[0])
		for _, result := range g.results[1:] {
			placed.join(of(result))
		}
		r.Placed = append(r.Placed, request.inItsOrder(placed))
	}
	for n, result := range g.results {
		r.GPUs = append(r.GPUs, result.GPUs...)
		for _, w := range result.Warnings {
			if n == 0 { // the others say the same
				w.Text = strings.Replace(w.Text, onNode(g.gpus[0])+" ", fmt.Sprintf("each of %d GPUs ", len(g.gpus)), 1)
				r.Warnings = append(r.Warnings, w)
			}
		}
	}
}

// sort brings a placement into its order.
func (r *Result) sort(gpus []GPU) {
	index := map[resource.GPUKey]int{}
	for _, g := range gpus {
		index[resource.GPUKey{Host: g.Host, UUID: g.UUID}] = g.Index
	}
	slices.SortStableFunc(r.Placed, func(a, b Placed) int { return a.Address.Compare(b.Address) })
	slices.SortStableFunc(r.Refused, func(a, b Refusal) int { return a.Addresses[0].Compare(b.Addresses[0]) })
	slices.SortStableFunc(r.GPUs, func(a, b Setup) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(index[resource.GPUKey{Host: a.Host, UUID: a.UUID}], index[resource.GPUKey{Host: b.Host, UUID: b.UUID}]), cmp.Compare(a.UUID, b.UUID))
	})
}
