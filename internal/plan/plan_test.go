package plan_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// world is a host in memory with what the state remembers of it.
type world struct {
	*worldtest.World
	t     *testing.T
	prior resource.Prior
}

func newWorld(t *testing.T, models ...string) *world {
	return &world{World: worldtest.New(t, models...), t: t}
}

// plan makes a plan. Whatever one shows as no change leaves the hardware alone.
func (w *world) plan(text string) (*plan.Plan, hcl.Diagnostics) {
	w.t.Helper()
	p, diags := w.Plan(w.t, text, w.prior)
	for _, s := range p.Steps {
		if _, take := s.Do.Op.(plan.TakeGPU); !p.Diff.Changes() && !take && !plan.Bookkeeping(s.Do.Op) {
			w.t.Errorf("%s is hidden under no changes", s.ID)
		}
	}
	return p, diags
}

// apply carries a plan out.
func (w *world) apply(p *plan.Plan) {
	w.t.Helper()
	run := w.Run(&worldtest.Journal{}, 3)
	result, err := run.Execute(context.Background(), p, w.prior, w.Live)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range result.Failures {
		w.t.Fatalf("%v\n%s", f, p)
	}
	w.prior = result.Prior
}

const lab = `host "lab" {}
`

var fleets = []string{
	lab + `session "worker" {
  count  = 7
  target = "2060"
}`,
	lab + `session "worker" {
  count  = 3
  target = "2060"
  env    = { SEED = count.index }
}`,
	lab + `session "worker" {
  count  = 3
  target = "3060"
}`,
	lab + `session "big" { target = "3090" }
session "small" {
  count  = 2
  target = "1660"
}`,
	lab + `session "big" {
  target = "3090"
  fit { tolerance = 0 }
}`,
	lab + `session "worker" {
  count   = 2
  target  = "2060"
  command = ["python", "train.py"]
  gpu     = 1
}`,
	"",
}

func TestPlanOfSevenWorkers(t *testing.T) {
	w := newWorld(t, "h200")
	p, diags := w.plan(fleets[0])
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	head, _, _ := strings.Cut(p.String(), "session.worker[1]/slice")
	want := `host.lab/boot: note-boot
GPU-0/take: take-gpu
GPU-0/persistence: set-gpu on  <- GPU-0/take
GPU-0/mig: set-gpu on  <- GPU-0/persistence
GPU-0/clock: set-gpu 1575 MHz  <- GPU-0/mig
session.worker[0]/slice: create-slice 1g.18gb, slot 0  <- GPU-0/clock
session.worker[0]/prepare: prepare  <- session.worker[0]/slice
`
	if d := cmp.Diff(want, head); d != "" {
		t.Error(d)
	}
	if n := p.Effects(); n != 18 {
		t.Errorf("%d steps touch the world, want 4 for the GPU and 2 for each of 7 sessions", n)
	}
}

// TestWalk goes from any fleet to any other, with the world meddled with in between: every plan must be possible, the
// one after it empty, and in the end the world as it was.
func TestWalk(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, "h200", "h200")
		start := w.String()
		for range 12 {
			fleet := fleets[random.IntN(len(fleets))]
			p, diags := w.plan(fleet)
			if diags.HasErrors() {
				t.Fatalf("seed %d: %v", seed, diags)
			}
			w.apply(p)
			if again, _ := w.plan(fleet); !again.Empty() || again.Diff.Changes() || again.Diff.Drifted() {
				t.Fatalf("seed %d: after apply there is still something to do:\n%sfor\n%s\non\n%s", seed, again, fleet, w)
			}
			w.meddle(random)
			p, diags = w.plan(fleet)
			if diags.HasErrors() {
				t.Fatalf("seed %d: %v", seed, diags)
			}
			if p.Diff.Drifted() && fleet != "" && p.Empty() {
				t.Fatalf("seed %d: drift, but no step repairs it: %+v", seed, p.Diff.Drift)
			}
			w.apply(p)
		}
		p, _ := w.plan("")
		w.apply(p)
		if d := cmp.Diff(start, w.String()); d != "" {
			t.Fatalf("seed %d: the world is not as it was:\n%s", seed, d)
		}
		if len(w.prior.GPUs)+len(w.prior.Sessions) > 0 {
			t.Fatalf("seed %d: the state still has %+v", seed, w.prior)
		}
	}
}

// meddle does what another user might do to the project's GPUs.
func (w *world) meddle(random *rand.Rand) {
	h := w.Host()
	g := &h.GPUs[random.IntN(len(h.GPUs))]
	held, ours := w.prior.GPU(worldtest.HostName, g.UUID)
	switch random.IntN(5) {
	case 0:
		if len(h.Bodies) > 0 {
			w.Remove(h.Bodies[random.IntN(len(h.Bodies))].Session)
		}
	case 1:
		if len(g.Slices) > 0 {
			g.Slices = g.Slices[1:]
		}
	case 2:
		if ours && held.Applied.Has(resource.PowerLimit) {
			g.PowerMW = g.Model.PowerMinMW
		}
	case 3:
		if len(h.Bodies) > 0 {
			h.Bodies[0].Hash = "edited"
		}
	case 4:
		w.Reboot()
	}
}

func TestPlanIsTheSameEveryTime(t *testing.T) {
	w := newWorld(t, "h200", "h200")
	p, _ := w.plan(fleets[0])
	w.apply(p)
	for _, fleet := range fleets {
		a, _ := w.plan(fleet)
		first, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			b, _ := w.plan(fleet)
			second, _ := json.Marshal(b)
			if string(first) != string(second) {
				t.Fatalf("two plans of the same differ:\n%s\n%s", first, second)
			}
		}
	}
}

func TestPlanSurvivesJSON(t *testing.T) {
	w := newWorld(t, "h200", "h200")
	for _, fleet := range fleets {
		p, _ := w.plan(fleet)
		data, err := json.Marshal(p.Saved("1"))
		if err != nil {
			t.Fatal(err)
		}
		var saved plan.Saved
		if err := json.Unmarshal(data, &saved); err != nil {
			t.Fatal(err)
		}
		back, err := saved.Plan(w.prior.Key)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p.String(), back.String()); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(p.Steps, back.Steps, cmp.Comparer(func(a, b plan.OpJSON) bool { return cmp.Equal(a.Op, b.Op) })); d != "" {
			t.Error(d)
		}
		w.apply(p)
	}
}

// TestCheck: plans as Build makes them are in order, others are refused.
func TestCheck(t *testing.T) {
	w := newWorld(t, "h200")
	p, _ := w.plan(fleets[0])
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func([]plan.Step){
		"twice":   func(s []plan.Step) { s[3].ID = s[2].ID },
		"later":   func(s []plan.Step) { s[2].Needs = []string{s[5].ID} },
		"unknown": func(s []plan.Step) { s[2].Needs = []string{"nothing"} },
		"empty":   func(s []plan.Step) { s[2].Do = plan.OpJSON{} },
	} {
		p, _ := w.plan(fleets[0])
		spoil(p.Steps)
		if p.Check() == nil {
			t.Errorf("%s: taken for a plan", name)
		}
	}
}

func TestUnknownOperationIsAnError(t *testing.T) {
	var op plan.OpJSON
	err := json.Unmarshal([]byte(`{"kind":"paint-gpu","do":{}}`), &op)
	if err == nil || !strings.Contains(err.Error(), "paint-gpu") {
		t.Errorf("got %v", err)
	}
}

// TestSharedGPU: the power limit follows the sessions, and the plan has its reason.
func TestSharedGPU(t *testing.T) {
	for _, test := range []struct {
		name, fleet string
		watts       int
		kept        resource.ReasonKind
	}{
		{"two", lab + `session "w" {
  count  = 2
  target = "2060"
}`, 320, ""},
		{"seven", fleets[0], 0, resource.AboveDefault},
		{"one", lab + `session "w" { target = "2060" }`, 200, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "h200")
			p, _ := w.plan(test.fleet)
			g := p.Diff.GPUs[0]
			if test.watts == 0 {
				if g.Settings.Has(resource.PowerLimit) || len(g.Kept) != 1 || g.Kept[0].Reason.Kind != test.kept {
					t.Errorf("settings %+v, kept %+v", g.Settings, g.Kept)
				}
				return
			}
			if !g.Settings.Has(resource.PowerLimit) || g.Settings.Value(resource.PowerLimit) != test.watts*1000 {
				t.Errorf("power limit %v, want %d W", g.Settings.Value(resource.PowerLimit), test.watts)
			}
		})
	}
}

// TestForeignSlice: a foreign slice is planned around, reported, and left.
func TestForeignSlice(t *testing.T) {
	w := newWorld(t, "h200")
	g := w.GPU("GPU-0")
	g.MIG, g.MIGPending = true, true
	g.Slices = []resource.LiveSlice{{Slice: resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "3g.71gb", Start: 4, Size: 4}, Handle: resource.Handle{GPUInstance: 99, UUID: "MIG-theirs"}}}
	p, diags := w.plan(lab + `session "w" {
  count  = 4
  target = "2060"
}`)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	w.apply(p)
	after, _ := w.plan("")
	reported := 0
	for _, d := range after.Diff.Drift {
		if d.Informational {
			reported++
		}
	}
	if reported != 1 || after.Diff.Drifted() {
		t.Errorf("a foreign slice must be reported and is no drift: %+v", after.Diff.Drift)
	}
	w.apply(after)
	if len(g.Slices) != 1 || g.Slices[0].Profile != "3g.71gb" || !g.MIG {
		t.Errorf("the foreign slice was harmed: %s", w)
	}
}

// TestBasisOfAFile reads the basis of a saved plan, also of a damaged one.
func TestBasisOfAFile(t *testing.T) {
	made := plan.NewBasis(resource.Prior{Lineage: "a", Serial: 2}, resource.Live{Hosts: []resource.Host{{Name: "lab", Driver: "550"}}})
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	var read, without plan.Basis
	if err := json.Unmarshal(text, &read); err != nil || read.Live.Hash() != made.Live.Hash() || read.Live.Hash() == "" {
		t.Errorf("%s: %v, %q and not %q", text, err, read.Live.Hash(), made.Live.Hash())
	}
	if err := json.Unmarshal([]byte(`{"serial": 2, "live": null}`), &without); err != nil || without.Live.Hash() != "" {
		t.Errorf("no fingerprint: %v, %q", err, without.Live.Hash())
	}
	if other := plan.NewBasis(resource.Prior{}, resource.Live{}); other.Live.Hash() == made.Live.Hash() {
		t.Error("two snapshots have one fingerprint")
	}
}
