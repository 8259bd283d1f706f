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
	with := together(requests)
	open := map[string]bool{} // hosts with a session that may have any of the GPUs
	for _, r := range requests {
		host := with.host(r)
		open[host] = open[host] || r.Want.GPU == ""
	}
	of := func(host, uuid string) resource.GPUKey {
		if host = cmp.Or(with[host], host); open[host] {
			uuid = ""
		}
		return resource.GPUKey{Host: host, UUID: uuid}
	}
	sizes := map[resource.GPUKey]int{}
	for i := range requests {
		sizes[of(with.host(requests[i]), requests[i].Want.GPU)]++
	}
	all := map[resource.GPUKey]*division{}
	for key, size := range sizes {
		all[key] = &division{requests: make([]Request, 0, size)}
	}
	for _, r := range requests {
		d := all[of(with.host(r), r.Want.GPU)]
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

// hostSets are the hosts that sessions may choose among, each with the host that stands for all of them.
type hostSets map[string]string

// together joins the hosts that a session may choose among.
func together(requests []Request) hostSets {
	all := hostSets{}
	for _, r := range requests {
		if r.Want.Host != "" || len(r.Hosts) == 0 {
			continue
		}
		to := all.host(r)
		for _, host := range r.Hosts {
			was := cmp.Or(all[host], host)
			all[host] = to
			for other, at := range all {
				if at == was {
					all[other] = to
				}
			}
		}
	}
	return all
}

// host stands for the hosts that a session may have.
func (j hostSets) host(r Request) string {
	host := r.Want.Host
	if host == "" && len(r.Hosts) > 0 {
		host = r.Hosts[0]
	}
	return cmp.Or(j[host], host)
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
