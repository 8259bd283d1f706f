package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
)

// world is a host in memory that plans are carried out on, and that prints
// itself: the same whatever way it was reached.
type world struct {
	t     *testing.T
	live  resource.Live
	prior resource.Prior
	made  int // slices so far: every one has a UUID of its own
}

// newWorld has one host, "lab", with GPUs of these models.
func newWorld(t *testing.T, models ...string) *world {
	t.Helper()
	host := resource.Host{Name: "lab", BootID: "boot-1", Runtime: "process"}
	for i, name := range models {
		m, err := catalog.HostModel(name)
		if err != nil {
			t.Fatal(err)
		}
		host.GPUs = append(host.GPUs, resource.GPU{Host: "lab", Index: i, UUID: fmt.Sprintf("GPU-%d", i), Model: m,
			MIGCapable: m.MIG(), PowerMW: m.PowerDefaultMW, SMClockMHz: m.ClocksMHz[0], Held: true})
	}
	return &world{t: t, live: resource.Live{Hosts: []resource.Host{host}}}
}

// intent reads a configuration.
func intent(t *testing.T, text string) *config.Intent {
	t.Helper()
	i, diags := config.Load(map[string][]byte{"fleet.hcl": []byte(text)}, config.Options{
		Dir: "/project", Home: "/home/me", Target: catalog.Target, Simulate: func(string) error { return nil }})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, text)
	}
	return i
}

// plan works out what a configuration asks for; "" asks for nothing.
func (w *world) plan(text string) (*plan.Plan, hcl.Diagnostics) {
	w.t.Helper()
	var (
		desired resource.Desired
		diags   hcl.Diagnostics
	)
	if text != "" {
		desired, diags = resolve.Desired(intent(w.t, text), w.prior, w.live)
	}
	d := diff.Compare(desired, w.prior, w.live, diff.Options{})
	return plan.Build(d, desired, w.prior, w.live), diags
}

// apply carries a plan out.
func (w *world) apply(p *plan.Plan) {
	w.t.Helper()
	w.prior.BootIDs = map[string]string{"lab": w.live.Hosts[0].BootID}
	done := map[string]bool{}
	for _, s := range p.Steps {
		for _, need := range s.Needs {
			if !done[need] {
				w.t.Fatalf("%s needs %s, which comes later or never:\n%s", s.ID, need, p)
			}
		}
		w.prior = plan.Fold(w.prior, s.Do.Op, w.do(s.Do.Op))
		done[s.ID] = true
	}
}

func (w *world) do(op plan.Op) plan.Made {
	w.t.Helper()
	switch op := op.(type) {
	case plan.SetMIG:
		g := w.gpu(op.GPU)
		if len(g.Slices) > 0 {
			w.t.Fatalf("MIG mode switched with slices on %s", op.GPU)
		}
		g.MIG, g.MIGPending = op.On, op.On
	case plan.SetPersistence:
		w.gpu(op.GPU).Persistence = op.On
	case plan.SetPower:
		g := w.gpu(op.GPU)
		if op.MW < g.Model.PowerMinMW || op.MW > g.Model.PowerMaxMW {
			w.t.Fatalf("power limit of %d mW on %s", op.MW, op.GPU)
		}
		g.PowerMW = op.MW
	case plan.SetClock:
		g := w.gpu(op.GPU)
		g.SMClockMHz = op.MHz
		if op.MHz == 0 {
			g.SMClockMHz = g.Model.ClocksMHz[0]
		}
	case plan.CreateSlice:
		return plan.Made{Handle: w.create(op.Session.Slice)}
	case plan.DestroySlice:
		g := w.gpu(op.Slice.GPU)
		was, _ := w.prior.Session(op.Address)
		g.Slices = slices.DeleteFunc(g.Slices, func(s resource.LiveSlice) bool { return s.UUID == was.Handle.UUID })
	case plan.Prepare:
		c := resource.Container{ID: op.Session.ID, Session: op.Session.ID, Host: "lab", State: resource.Running,
			Hash: op.Session.Hash(), SliceID: op.Session.Slice.GPU}
		if s, ok := w.prior.Session(op.Session.Address); ok && s.Handle != nil {
			c.SliceID = s.Handle.UUID
		}
		w.remove(c.Session)
		h := &w.live.Hosts[0]
		h.Containers = append(h.Containers, c)
		return plan.Made{Container: &c}
	case plan.Unprepare:
		w.remove(op.ID)
	}
	return plan.Made{}
}

func (w *world) create(s resource.Slice) *resource.Handle {
	w.t.Helper()
	g := w.gpu(s.GPU)
	if !g.MIG {
		w.t.Fatalf("a slice on %s, whose MIG mode is off", s.GPU)
	}
	if other := diff.Overlapping(*g, s); other != nil {
		w.t.Fatalf("slice %v overlaps %v", s, other.Slice)
	}
	w.made++
	made := resource.LiveSlice{Slice: s, Handle: resource.Handle{GPUInstance: w.made, UUID: fmt.Sprintf("MIG-%d", w.made)}}
	g.Slices = append(g.Slices, made)
	return &made.Handle
}

func (w *world) remove(session string) {
	h := &w.live.Hosts[0]
	h.Containers = slices.DeleteFunc(h.Containers, func(c resource.Container) bool { return c.Session == session })
}

func (w *world) gpu(uuid string) *resource.GPU {
	for i := range w.live.Hosts[0].GPUs {
		if w.live.Hosts[0].GPUs[i].UUID == uuid {
			return &w.live.Hosts[0].GPUs[i]
		}
	}
	w.t.Fatalf("no GPU %s", uuid)
	return nil
}

// String is what counts of the world: settings, slices, containers.
func (w *world) String() string {
	var b strings.Builder
	for _, g := range w.live.Hosts[0].GPUs {
		fmt.Fprintf(&b, "%s mig=%v persistence=%v power=%d clock=%d\n", g.UUID, g.MIG, g.Persistence, g.PowerMW, g.SMClockMHz)
		var lines []string
		for _, s := range g.Slices {
			lines = append(lines, "  "+s.Slice.String())
		}
		slices.Sort(lines)
		fmt.Fprintln(&b, strings.Join(lines, "\n"))
	}
	for _, c := range w.live.Hosts[0].Containers {
		fmt.Fprintf(&b, "%s %s\n", c.Session, c.State)
	}
	return b.String()
}
