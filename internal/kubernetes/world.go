package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/config"
	"cosplay/internal/prose"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
)

// World is a cluster as placement sees it: one host with the GPUs of all nodes, numbered in their order, on which each claim
// is another project. Sessions whose claims are there already stay in place.
type World struct {
	Host     resource.Host
	Kept     []resource.PriorSession
	Warnings []string // what gets no new session, and which sessions cannot stay

	gpus map[string]*GPU // by the name that the host has for them
	own  owners
	kept map[resource.Address]bool
	lost prose.Groups[resource.Address] // sessions that cannot stay, by what they had
}

// World fits a cluster to the sessions of a host block. The claims of these stay in place, as long as they say the same and
// their devices exist, and are released otherwise. All other claims are foreign.
func (c Cluster) World(host config.Host, sessions []config.Session, names map[resource.Address]string) World {
	w := World{Host: resource.Host{Name: host.Name, Runtime: config.KubernetesRuntime}, Warnings: slices.Clone(c.warnings), gpus: map[string]*GPU{},
		own: newOwners(host.Namespace, sessions, names), kept: map[resource.Address]bool{}}
	count := map[string]int{}
	for _, g := range c.GPUs {
		count[g.UUID]++
	}
	for _, g := range c.GPUs {
		key := g.UUID
		if count[key] > 1 { // simulated nodes have the same
			key += "@" + g.Node
		}
		w.add(g, key)
	}
	slices.SortFunc(w.Host.Ledger, func(a, b resource.Page) int { return strings.Compare(a.UUID, b.UUID) })
	w.Host.Index()
	for _, s := range c.stale {
		if of := w.own.of(s.claim); of != nil {
			w.lost.Add(fmt.Sprintf("node %s, which does not publish its device. Write the file again if cosplay-node only restarts there", s.node), of.Address)
		}
	}
	for _, from := range w.lost.Texts {
		lost := prose.Only(w.lost.Of[from], func(a resource.Address) bool { return !w.kept[a] })
		slices.SortFunc(lost, resource.Address.Compare)
		if len(lost) > 0 {
			w.Warnings = append(w.Warnings, fmt.Sprintf("%s cannot stay on %s", resource.AddressNames(lost, 3), from))
		}
	}
	return w
}

// add adds a GPU with those of its claims that stay, unless no session can be on it.
func (w *World) add(g GPU, key string) {
	all, stays, label := g.taken, false, fmt.Sprintf("GPU %d of node %s", g.Index, g.Node)
	g.taken = nil
	for _, a := range all {
		s := w.own.of(a.claim)
		switch {
		case s == nil || w.kept[s.Address]:
			g.taken = append(g.taken, a)
		case g.lost || a.lost:
			w.lost.Add(label+", which is lost", s.Address)
		case a.claim.states(*s) && a.suits(*s, key):
			w.Kept = append(w.Kept, a.session(*s, w.Host.Name, key))
			w.kept[s.Address], stays, a.stays = true, true, true
			g.taken = append(g.taken, a)
		}
	}
	whole := slices.IndexFunc(g.taken, func(a allocation) bool { return a.profile == "" })
	switch {
	case stays:
	case g.closed:
		return
	case whole >= 0:
		w.Warnings = append(w.Warnings, fmt.Sprintf("%s is left out: claim %s has the whole of it", label, g.taken[whole].claim))
		return
	case !g.has("", 0):
		w.Warnings = append(w.Warnings, label+" is left out: the node reports that it cannot be used as a whole")
		return
	}
	w.gpus[key] = &g
	w.Host.GPUs = append(w.Host.GPUs, g.read(w.Host.Name, key, len(w.Host.GPUs)))
	if len(g.taken) > 0 { // no project may change its settings
		w.Host.Ledger = append(w.Host.Ledger, resource.Page{UUID: key, Set: resource.Settings{}.With(resource.SMClock, g.clock()), Holders: []resource.Holder{{Lineage: config.KubernetesRuntime}}})
	}
}

// read is the GPU as if its driver had been asked, with the placements that sessions have or can get.
func (g *GPU) read(host, key string, index int) resource.GPU {
	gpu := resource.GPU{Host: host, Index: index, UUID: key, Node: g.Node, Model: g.Model, MIGCapable: g.Model.MIG(), Persistence: true, PowerMW: g.Model.PowerDefaultMW,
		SMClockMHz: g.Model.ClocksMHz[0], LowClockReason: true}
	gpu.Model.Profiles = nil
	for _, p := range g.Model.Profiles {
		if p.Starts = prose.Only(p.Starts, func(start int) bool { return g.has(p.Name, start) }); len(p.Starts) > 0 {
			gpu.Model.Profiles = append(gpu.Model.Profiles, p)
		}
	}
	if len(g.taken) > 0 {
		gpu.SMClockMHz, gpu.LowClockReason = g.clock(), false
	}
	for _, a := range g.taken {
		if a.profile != "" {
			gpu.MIG, gpu.MIGPending = true, true
		}
		if a.profile != "" && !a.stays { // else a plan shows it as its session's
			gpu.Slices = append(gpu.Slices, resource.LiveSlice{Slice: a.slice(host, key), Handle: resource.Handle{UUID: "MIG-" + a.name}})
		}
	}
	return gpu
}

// slice is a device as a slice of a session.
func (d device) slice(host, key string) resource.Slice {
	return resource.Slice{Host: host, GPU: key, Profile: d.profile, Start: d.start, Size: d.size}
}

// session is the session that has the device.
func (d device) session(s config.Session, host, key string) resource.PriorSession {
	want, _ := resolve.Request(s, resource.Live{Hosts: []resource.Host{{Name: host, GPUs: []resource.GPU{{UUID: key}}}}})
	return resource.PriorSession{Session: resource.Session{Address: s.Address, ID: resource.SessionID(s.Address), Target: s.Target, Runtime: config.KubernetesRuntime,
		Request: want, Slice: d.slice(host, key)}}
}

// suits reports whether the device is what the session's block asks for.
func (d device) suits(s config.Session, key string) bool {
	profile, slot := resource.CutSlot(s.Slice)
	whole := d.profile == ""
	return (s.GPU == nil || s.GPU.Matches(resource.GPU{UUID: key})) && (profile == "" || profile == d.profile) && (slot < 0 || slot == d.start) &&
		(s.Sharing != resource.SharingMIG || !whole) && (s.Sharing != resource.SharingExclusive || whole)
}

// GPU is where a slice of the host is: its node, and its GPU as the node calls it.
func (w World) GPU(key string) GPU { return *w.gpus[key] }
