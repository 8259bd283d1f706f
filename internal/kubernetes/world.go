package kubernetes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/config"
	"cosplay/internal/pattern"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
)

// World is a cluster as placement sees it: one host with the GPUs of all nodes, numbered in their order, on which each claim
// is another project. Sessions whose claims are there already stay in place.
type World struct {
	Host    resource.Host
	Kept    []resource.PriorSession
	LeftOut []string

	namespace string
	gpus      map[string]*GPU // by the name that the host has for them
}

// World fits a cluster to the sessions of a host block. Claims in its namespace that were written for these are theirs, and
// all others are foreign.
func (c Cluster) World(host config.Host, sessions []config.Session, names map[resource.Address]string) World {
	w := World{Host: resource.Host{Name: host.Name, Runtime: config.KubernetesRuntime}, LeftOut: slices.Clone(c.LeftOut), namespace: host.Namespace, gpus: map[string]*GPU{}}
	w.Host.GPUs = make([]resource.GPU, 0, len(c.GPUs))
	count := map[string]int{}
	for _, g := range c.GPUs {
		count[g.UUID]++
	}
	for i := range c.GPUs {
		g := &c.GPUs[i]
		key := g.UUID
		if count[key] > 1 { // simulated nodes have the same
			key += "@" + g.Node
		}
		w.gpus[key] = g
		w.Host.GPUs = append(w.Host.GPUs, g.read(host.Name, key, i))
		if len(g.taken) > 0 {
			w.Host.Ledger = append(w.Host.Ledger, g.page(key))
		}
	}
	slices.SortFunc(w.Host.Ledger, func(a, b resource.Page) int { return strings.Compare(a.UUID, b.UUID) })
	w.Host.Index()
	w.keep(sessions, names)
	w.drop()
	return w
}

// read is the GPU as if its driver had been asked.
func (g *GPU) read(host, key string, index int) resource.GPU {
	gpu := resource.GPU{Host: host, Index: index, UUID: key, Model: g.Model, MIGCapable: g.Model.MIG(), Persistence: true, PowerMW: g.Model.PowerDefaultMW,
		SMClockMHz: g.Model.ClocksMHz[0], LowClockReason: true}
	if len(g.taken) > 0 {
		gpu.SMClockMHz, gpu.LowClockReason = g.clock(), false
	}
	for n, a := range g.taken {
		if a.profile != "" {
			gpu.MIG, gpu.MIGPending = true, true
			gpu.Slices = append(gpu.Slices, resource.LiveSlice{Slice: a.slice(host, key), Handle: handle(n, a)})
		}
	}
	return gpu
}

// slice is a device as a slice of a session.
func (d device) slice(host, key string) resource.Slice {
	return resource.Slice{Host: host, GPU: key, Profile: d.profile, Start: d.start, Size: d.size}
}

func handle(n int, a allocation) resource.Handle {
	return resource.Handle{GPUInstance: n + 1, UUID: "MIG-" + a.name}
}

// page is the ledger of a GPU that claims have: no project may change its settings.
func (g *GPU) page(key string) resource.Page {
	return resource.Page{UUID: key, Set: resource.Settings{}.With(resource.SMClock, g.clock()), Holders: []resource.Holder{{Lineage: config.KubernetesRuntime}}}
}

// keep finds the sessions that have their devices already.
func (w *World) keep(sessions []config.Session, names map[resource.Address]string) {
	live := resource.Live{Hosts: []resource.Host{w.Host}}
	for _, s := range sessions {
		want, diags := resolve.Request(s, live)
		if diags.HasErrors() {
			continue // the plan refuses it
		}
		if kept, is := w.kept(s, names[s.Address]); is {
			kept.Request = want
			w.Kept = append(w.Kept, kept)
		}
	}
}

func (w *World) kept(s config.Session, name string) (resource.PriorSession, bool) {
	address := s.Address.String()
	for _, gpu := range w.Host.GPUs {
		g := w.gpus[gpu.UUID]
		for n, a := range g.taken {
			if a.claim.namespace != w.namespace || !a.claim.isOf(s, address, name) || !a.suits(s, gpu) {
				continue
			}
			kept := resource.PriorSession{Session: resource.Session{Address: s.Address, ID: resource.SessionID(s.Address), Target: s.Target, Runtime: config.KubernetesRuntime,
				Slice: a.slice(w.Host.Name, gpu.UUID)}}
			if a.profile != "" {
				kept.Handle = new(handle(n, a))
			}
			return kept, true
		}
	}
	return resource.PriorSession{}, false
}

var podSuffix = pattern.Of(`^-[a-z0-9]{1,10}-[a-z0-9]{5}$`)

// isOf reports whether a claim is what a session would have: one that cosplay wrote for it, or that of its pod.
func (c claim) isOf(s config.Session, address, name string) bool {
	if c.session == "" {
		suffix, is := strings.CutPrefix(c.pod, name)
		bare := parametersOf(s) == parametersOf(config.Session{Target: s.Target}) // a class states no more
		return is && podSuffix().MatchString(suffix) && c.class == plainClass+"-"+s.Target.Key && bare
	}
	var has parameters
	return c.session == address && json.Unmarshal([]byte(c.parameters), &has) == nil && has == parametersOf(s)
}

// suits reports whether the device is what the session's block asks for.
func (a allocation) suits(s config.Session, gpu resource.GPU) bool {
	profile, slot := resource.CutSlot(s.Slice)
	whole := a.profile == ""
	return (s.GPU == nil || s.GPU.Matches(gpu)) && (profile == "" || profile == a.profile) && (slot < 0 || slot == a.start) &&
		(s.Sharing != resource.SharingMIG || !whole) && (s.Sharing != resource.SharingExclusive || whole)
}

// drop removes the GPUs that another claim has as a whole.
func (w *World) drop() {
	var rest []resource.GPU
	for _, gpu := range w.Host.GPUs {
		by, taken := w.gpus[gpu.UUID].whole()
		own := slices.ContainsFunc(w.Kept, func(s resource.PriorSession) bool { return s.Slice.GPU == gpu.UUID })
		switch label := fmt.Sprintf("GPU %d of node %s", w.gpus[gpu.UUID].Index, w.gpus[gpu.UUID].Node); {
		case !taken || own:
			rest = append(rest, gpu)
		case by == claim{}:
			w.LeftOut = append(w.LeftOut, label+" is left out: the node reports that it cannot be used as a whole")
		default:
			w.LeftOut = append(w.LeftOut, fmt.Sprintf("%s is left out: claim %s has the whole of it", label, by))
		}
	}
	w.Host.GPUs = rest
	w.Host.Index()
}

// Shown is the host without the slices of the sessions that stay, which a plan shows as theirs.
func (w World) Shown() resource.Host {
	host := w.Host
	host.GPUs = slices.Clone(host.GPUs)
	for i := range host.GPUs {
		host.GPUs[i].Slices = slices.DeleteFunc(slices.Clone(host.GPUs[i].Slices), func(l resource.LiveSlice) bool {
			return slices.ContainsFunc(w.Kept, func(s resource.PriorSession) bool { return s.Slice == l.Slice })
		})
	}
	host.Index()
	return host
}

// GPU is where a slice of the host is: its node, and its GPU as the node calls it.
func (w World) GPU(key string) GPU { return *w.gpus[key] }
