package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/diff"
	"cosplay/internal/fit"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// world is a small cluster by hand: what is wanted, what is remembered and what
// is there. Plans over it come from the real diff and plan packages.
type world struct {
	desired resource.Desired
	prior   resource.Prior
	live    resource.Live
}

func targetOf(key string) resource.Target {
	t, err := catalog.Target(key)
	if err != nil {
		panic(err)
	}
	return t
}

func modelOf(key string) resource.Model {
	m, err := catalog.HostModel(key)
	if err != nil {
		panic(err)
	}
	return m
}

// host adds a simulated host with GPUs of these models, MIG off, idle.
func (w *world) host(name string, models ...string) *world {
	h := resource.Host{Name: name, Simulated: fmt.Sprintf("%d x %s", len(models), models[0]), Driver: "570.86.15", BootID: "boot-1", Runtime: "process", Library: "libnvidia-ml.so.1"}
	for i, key := range models {
		m := modelOf(key)
		h.GPUs = append(h.GPUs, resource.GPU{
			Host: name, Index: i, UUID: fmt.Sprintf("GPU-51a%d%dc0d-94b6-4b2f-a1f0-%012d", len(w.live.Hosts), i, i), PCI: fmt.Sprintf("00000000:%02X:00.0", 0x84+i), Model: m,
			MIGCapable: m.MIG(), PowerMW: m.PowerDefaultMW, SMClockMHz: m.ClocksMHz[0], LowClockReason: true, TemperatureC: 41, DrawMW: 76_400, MemoryUsedMiB: 512,
		})
	}
	w.live.Hosts = append(w.live.Hosts, h)
	return w
}

func (w *world) gpu(host, index int) *resource.GPU { return &w.live.Hosts[host].GPUs[index] }

// place wants a session in a slice; profile "" is the whole GPU.
func (w *world) place(a resource.Address, target string, host, index int, profile string, start int) *world {
	g, t := w.gpu(host, index), targetOf(target)
	p, _ := g.Model.Profile(profile)
	all := fit.Candidates(g.Model, t, resource.DefaultFit())
	i := slices.IndexFunc(all, func(f resource.Fit) bool { return f.Profile == profile })
	if i < 0 {
		panic(profile + " does not hold " + target)
	}
	f := all[i]
	w.desired.Sessions = append(w.desired.Sessions, resource.Session{
		Address: a, ID: resource.SessionID(a), Target: t, Request: resource.Request{Host: g.Host, Target: t.Key, Fit: resource.DefaultFit()},
		Slice: resource.Slice{Host: g.Host, GPU: g.UUID, Profile: profile, Start: start, Size: p.MemorySlices},
		Fit:   f, Runtime: w.live.Hosts[host].Runtime, Program: resource.Program{Workspace: "/home/ann/exp", Env: map[string]string{"SEED": "11"}}, Spec: w.spec(host),
	})
	slices.SortFunc(w.desired.Sessions, func(a, b resource.Session) int { return a.Address.Compare(b.Address) })
	return w.setUp(g, t, profile != "", f.ClockMHz)
}

// setUp wants a GPU's settings.
func (w *world) setUp(g *resource.GPU, t resource.Target, mig bool, clock int) *world {
	if slices.ContainsFunc(w.desired.GPUs, func(d resource.DesiredGPU) bool { return d.UUID == g.UUID }) {
		return w
	}
	if clock == g.Model.MaxClockMHz() {
		clock = 0
	}
	w.desired.GPUs = append(w.desired.GPUs, resource.DesiredGPU{Host: g.Host, UUID: g.UUID,
		Settings: resource.Settings{}.With(resource.MIGMode, resource.Bit(mig)).With(resource.PersistenceMode, resource.On).With(resource.SMClock, clock).With(resource.PowerLimit, g.Model.PowerDefaultMW),
		Why: map[resource.Setting]resource.Reason{resource.MIGMode: {Kind: resource.ForSlices}, resource.PersistenceMode: {Kind: resource.KeepsSettings},
			resource.SMClock:    {Kind: resource.BestClock, Targets: []string{t.ShortName()}},
			resource.PowerLimit: {Kind: resource.AboveDefault, Power: []resource.TargetPower{{Count: 7, W: 160}}, MW: g.Model.PowerDefaultMW}}})
	return w
}

// seven wants seven RTX 2060 on one GPU.
func (w *world) seven(host, index, from int) *world {
	for i := range 7 {
		w.place(resource.Nth("worker", from+i), "2060", host, index, "1g.18gb", i)
	}
	return w
}

func (w *world) diff() diff.Diff { return diff.Compare(w.desired, w.prior, w.live, diff.Options{}) }

func (w *world) plan() *plan.Plan { return plan.Build(w.desired, w.prior, w.live, diff.Options{}) }

func (w *world) view() PlanView {
	return PlanView{Config: "fleet.hcl", Flags: []string{"--file", "fleet.hcl"}, Prior: w.prior, Live: w.live, Plan: w.plan()}
}

func (w *world) status() StatusView {
	return StatusView{Prior: w.prior, Live: w.live, Drift: w.diff().Drift}
}

// applied makes all that is planned true, in the state and in the world.
func (w *world) applied() *world {
	next := w.prior.Clone()
	next.Lineage, next.Key, next.Serial = "6f3c1e0a-2b7d-4c5e", stateKey, w.prior.Serial+1
	for _, h := range w.live.Hosts {
		next.BootIDs[h.Name] = h.BootID
	}
	for _, step := range w.plan().Steps {
		next = plan.Fold(next, step.Do.Op, w.do(step.Do.Op))
	}
	w.prior = next
	return w
}

// stateKey is the secret of the state: no screen may show it.
const stateKey = "c2VjcmV0IG9mIHRoZSBzdGF0ZQ"

func (w *world) at(host, uuid string) *resource.GPU {
	for i := range w.live.Hosts {
		for j := range w.live.Hosts[i].GPUs {
			if g := &w.live.Hosts[i].GPUs[j]; g.Host == host && g.UUID == uuid {
				return g
			}
		}
	}
	panic(uuid)
}

func (w *world) do(op plan.Op) plan.Made {
	switch op := op.(type) {
	case plan.SetGPU:
		g := w.at(op.Host, op.GPU)
		switch op.Setting {
		case resource.MIGMode:
			g.MIG, g.MIGPending = op.Value == resource.On, op.Value == resource.On
		case resource.PersistenceMode:
			g.Persistence = op.Value == resource.On
		case resource.PowerLimit:
			g.PowerMW = op.Value
		case resource.SMClock:
			g.SMClockMHz, g.LowClockReason = cmp.Or(op.Value, g.Model.MaxClockMHz()), false
		}
	case plan.CreateSlice:
		return plan.Made{Handle: w.slice(op.Session.Slice)}
	case plan.Prepare:
		if !op.Session.Spec.IsZero() {
			return plan.Made{Body: w.containerOf(op.Session)}
		}
		return plan.Made{Body: w.container(op.Session.Slice.Host, op.Session.ID, op.Session.Hash(stateKey))}
	case plan.EnsureImage:
		w.image(op.Image, "sha256:9f1c5e0a7b3d"+op.Image)
	}
	return plan.Made{}
}

// slice makes a slice on a GPU.
func (w *world) slice(s resource.Slice) *resource.Handle {
	g := w.at(s.Host, s.GPU)
	id := 7 + s.Start
	handle := resource.Handle{GPUInstance: id, UUID: fmt.Sprintf("MIG-41c2%02d%02d-1d4e-5e8f-9a0b-c3d2e1f00a%02d", g.Index, s.Start, id)}
	g.Slices = append(g.Slices, resource.LiveSlice{Slice: s, Handle: handle})
	return &handle
}

// foreign puts a foreign slice on a GPU.
func (w *world) foreign(host, index int, profile string, start int) *world {
	g := w.gpu(host, index)
	p, _ := g.Model.Profile(profile)
	g.MIG, g.MIGPending = true, true
	w.slice(resource.Slice{Host: g.Host, GPU: g.UUID, Profile: profile, Start: start, Size: p.MemorySlices})
	return w
}

func (w *world) container(host, id, hash string) *resource.Body {
	for i := range w.live.Hosts {
		if h := &w.live.Hosts[i]; h.Name == host {
			uuid := ""
			if s, ok := w.ofID(id); ok && s.Handle != nil {
				uuid = s.Handle.UUID
			}
			c := resource.Body{ID: "/run/cosplay/" + id, Session: id, Host: host, Runtime: "process", State: resource.Running, Hash: hash, SliceID: uuid}
			h.Bodies = append(h.Bodies, c)
			slices.SortFunc(h.Bodies, resource.Body.Compare)
			return &c
		}
	}
	panic(host)
}

// ofID gives the slice that was made last for a session: its container holds it.
func (w *world) ofID(id string) (resource.PriorSession, bool) {
	for _, s := range w.desired.Sessions {
		if s.ID != id {
			continue
		}
		for _, l := range w.at(s.Slice.Host, s.Slice.GPU).Slices {
			if l.Slice == s.Slice {
				return resource.PriorSession{Session: s, Handle: &l.Handle}, true
			}
		}
	}
	return resource.PriorSession{}, false
}

// lose takes a session's container, or its slice too, behind our back.
func (w *world) lose(id string, slice bool) *world {
	h := &w.live.Hosts[0]
	h.Bodies = slices.DeleteFunc(h.Bodies, func(c resource.Body) bool { return c.Session == id })
	if s, ok := w.ofID(id); ok && slice {
		g := w.at(s.Slice.Host, s.Slice.GPU)
		g.Slices = slices.DeleteFunc(g.Slices, func(l resource.LiveSlice) bool { return l.Slice == s.Slice })
	}
	return w
}

// env changes a wanted session's environment.
func (w *world) env(a resource.Address, name, value string) *world {
	for i := range w.desired.Sessions {
		if s := &w.desired.Sessions[i]; s.Address == a {
			s.Env = maps.Clone(s.Env)
			s.Env[name] = value
		}
	}
	return w
}

// without no longer wants what keep refuses, nor GPUs without a session.
func (w *world) without(drop func(resource.Session) bool) *world {
	w.desired.Sessions = slices.DeleteFunc(w.desired.Sessions, drop)
	w.desired.GPUs = slices.DeleteFunc(w.desired.GPUs, func(d resource.DesiredGPU) bool {
		return !slices.ContainsFunc(w.desired.Sessions, func(s resource.Session) bool { return s.Slice.GPU == d.UUID })
	})
	return w
}

func all(resource.Session) bool { return true }

// TestWorldConverges guards the goldens: a world that is applied has nothing
// left to do, so what they show is the screens' doing.
func TestWorldConverges(t *testing.T) {
	for name, w := range map[string]*world{"fleet": rack().applied(), "mixed": mixed().applied()} {
		if d := w.diff(); d.Changes() || len(d.Drift) > 0 {
			t.Errorf("%s: after apply there are still changes:\n%s%v", name, w.plan(), d.Drift)
		}
	}
}
