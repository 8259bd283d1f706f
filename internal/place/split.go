package place

import (
	"cmp"
	"maps"
	"slices"

	"cosplay/internal/resource"
)

// A division is sessions and the only GPUs that they may have, which no other session may have: a host, or one of its
// GPUs if all sessions of the host name theirs. Placing divisions separately costs as much as the sum of them, and a
// crowded one loosens no other.
type division struct {
	gpus     []GPU
	requests []Request
}

// divide returns the divisions that have sessions, in an order that does not depend on that of the arguments.
func divide(gpus []GPU, requests []Request) []division {
	open := map[string]bool{} // hosts with a session that may have any of the GPUs
	for _, r := range requests {
		open[r.Want.Host] = open[r.Want.Host] || r.Want.GPU == ""
	}
	of := func(host, uuid string) resource.GPUKey {
		if open[host] {
			uuid = ""
		}
		return resource.GPUKey{Host: host, UUID: uuid}
	}
	sizes := map[resource.GPUKey]int{}
	for i := range requests {
		sizes[of(requests[i].Want.Host, requests[i].Want.GPU)]++
	}
	all := map[resource.GPUKey]*division{}
	for key, size := range sizes {
		all[key] = &division{requests: make([]Request, 0, size)}
	}
	for _, r := range requests {
		d := all[of(r.Want.Host, r.Want.GPU)]
		d.requests = append(d.requests, r)
	}
	for _, g := range gpus {
		if d := all[of(g.Host, g.UUID)]; d != nil {
			d.gpus = append(d.gpus, g)
		}
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b resource.GPUKey) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(all[a].index(), all[b].index()), cmp.Compare(a.UUID, b.UUID))
	})
	divisions := make([]division, 0, len(keys))
	for _, key := range keys {
		divisions = append(divisions, *all[key])
	}
	return divisions
}

// index is the smallest index of its GPUs; -1 if the GPU that its sessions name does not exist.
func (d *division) index() int {
	if len(d.gpus) == 0 {
		return -1
	}
	return slices.MinFunc(d.gpus, func(a, b GPU) int { return cmp.Compare(a.Index, b.Index) }).Index
}

// naming returns the GPUs so that messages name their hosts, if there are several.
func naming(gpus []GPU) []GPU {
	gpus = slices.Clone(gpus)
	several := slices.ContainsFunc(gpus, func(g GPU) bool { return g.Host != gpus[0].Host })
	for i := range gpus {
		gpus[i].ofSeveral = several
	}
	return gpus
}
