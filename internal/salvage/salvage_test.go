package salvage_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
	"cosplay/internal/worldtest"
)

const (
	lineage = "ours"
	three   = `host "lab" {}
session "worker" {
  count  = 3
  target = "2060"
}`
)

var errInterrupted = errors.New("interrupted")

// remains returns the labels of a world's containers.
func remains(w *worldtest.World) []resource.Remains {
	var all []resource.Remains
	for _, c := range w.Host().Bodies {
		all = append(all, resource.Remains{Session: resource.Session{ID: c.Session, Runtime: c.Runtime}, Body: c, Proven: true})
	}
	return all
}

// bring applies a configuration to the world, as far as possible.
func bring(t *testing.T, w *worldtest.World, text string, prior resource.Prior) (resource.Prior, error) {
	t.Helper()
	p, diags := w.Plan(t, text, prior)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	result, err := w.Run(&worldtest.Journal{}, 1).Execute(context.Background(), p, prior, w.Live)
	for _, f := range result.Failures {
		err = errors.Join(err, f.Err)
	}
	return result.Prior, err
}

// TestCutAnywhere checks that, wherever apply or destroy is interrupted and even if state and journal are lost, all
// objects are found and removed, and the baseline is restored.
func TestCutAnywhere(t *testing.T) {
	for _, story := range []struct{ name, before, then string }{{"apply", "", three}, {"destroy", three, ""}} {
		t.Run(story.name, func(t *testing.T) {
			points := 0
			for n := 0; ; n++ {
				w := worldtest.New(t, "h200")
				w.Lineage = lineage
				start := w.String()
				prior, err := bring(t, w, story.before, resource.Prior{Lineage: lineage})
				if err != nil {
					t.Fatal(err)
				}
				changes := 0
				w.Fault = func(string) error {
					if changes++; changes > n {
						return errInterrupted
					}
					return nil
				}
				run := w.Run(&worldtest.Journal{}, 1)
				run.KeepPartial = true
				p, _ := w.Plan(t, story.then, prior)
				if _, err := run.Execute(context.Background(), p, prior, w.Live); err != nil {
					t.Fatal(err)
				}
				w.Fault = nil
				if changes <= n {
					break // no interruption happened
				}
				points++
				found, notes := salvage.Prior(salvage.Sources{Lineage: lineage, Live: w.Live, Remains: remains(w), Interrupted: true})
				if len(notes) > 0 {
					t.Errorf("cut at %d: %v", n, notes)
				}
				left, err := bring(t, w, "", found)
				if err != nil || len(left.Sessions)+len(left.GPUs) > 0 {
					t.Fatalf("cut at %d: %v, %+v", n, err, left)
				}
				if d := cmp.Diff(start, w.String()); d != "" {
					t.Fatalf("cut at %d: the world is not as it was:\n%s", n, d)
				}
			}
			if t.Logf("%d points", points); points < 10 {
				t.Errorf("only %d points: the test proves too little", points)
			}
		})
	}
}

// TestMaking checks that a slice whose creation was only announced belongs to the project unless there is evidence
// against it.
func TestMaking(t *testing.T) {
	for _, test := range []struct {
		name   string
		meddle func(*resource.Host)
		ours   bool
		listed resource.NoteKind
	}{
		{"nothing against it", func(*resource.Host) {}, true, ""},
		{"in use", func(h *resource.Host) {
			h.GPUs[0].Processes = []resource.Process{{PID: 1, GPUInstance: &h.GPUs[0].Slices[0].GPUInstance}}
		}, false, resource.SliceMaybeOwn},
		{"after a reboot", func(h *resource.Host) { h.BootID = "boot-2" }, false, resource.SliceFromOtherBoot},
		{"another project's", func(h *resource.Host) {
			h.Ledger[0].Holders = append(h.Ledger[0].Holders, resource.Holder{Lineage: "other", Slices: []resource.LiveSlice{h.GPUs[0].Slices[0]}})
		}, false, resource.SliceOfProject},
		{"of another profile", func(h *resource.Host) { h.GPUs[0].Slices[0].Profile = "2g.35gb" }, false, ""},
		{"elsewhere", func(h *resource.Host) { h.GPUs[0].Slices[0].Start = 2 }, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			slice := resource.LiveSlice{Slice: resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 4, Size: 1}, Handle: resource.Handle{GPUInstance: 9, UUID: "MIG-9"}}
			host := resource.Host{Name: "lab", BootID: "boot-1",
				GPUs: []resource.GPU{{Host: "lab", UUID: "GPU-0", MIG: true, Slices: []resource.LiveSlice{slice}}},
				Ledger: []resource.Page{{UUID: "GPU-0", BootID: "boot-1", Holders: []resource.Holder{
					{Lineage: lineage, Slices: []resource.LiveSlice{{Slice: slice.Slice}}}}}}}
			test.meddle(&host)
			live := resource.Live{Hosts: []resource.Host{host}}
			found, notes := salvage.Prior(salvage.Sources{Lineage: lineage, Live: live})
			if ours := len(found.Sessions) == 1; ours != test.ours {
				t.Errorf("ours is %v", ours)
			}
			if len(notes) > 1 || len(notes) == 1 && notes[0].Kind != test.listed || len(notes) == 0 && test.listed != "" {
				t.Errorf("noted %v, want %q", notes, test.listed)
			}
			if !test.ours && len(diff.Foreign(host.GPUs[0], found.Placements())) != 1 {
				t.Error("the slice is not left to its owner")
			}
		})
	}
}

// TestRebuilt checks that the rebuilt state equals the lost one, apart from what only the lost one could know.
func TestRebuilt(t *testing.T) {
	w := worldtest.New(t, "h200", "h200")
	w.Lineage = lineage
	prior, err := bring(t, w, three, resource.Prior{Lineage: lineage})
	if err != nil {
		t.Fatal(err)
	}
	var listed []resource.Remains
	for _, s := range prior.Sessions {
		listed = append(listed, resource.Remains{Session: s.Session, Body: *s.Body, Proven: true})
	}
	slices.Reverse(listed)
	// Objects of another project are left out.
	h := w.Host()
	h.Ledger = append(h.Ledger, resource.Page{UUID: "GPU-1", Holders: []resource.Holder{{Lineage: "other"}}})
	found, notes := salvage.Prior(salvage.Sources{Lineage: lineage, Live: w.Live, Remains: listed})
	for i := range prior.Sessions {
		prior.Sessions[i].UpAt = 0 // no host records it
	}
	if d := cmp.Diff(prior.Sessions, found.Sessions); d != "" || len(notes) > 0 {
		t.Errorf("sessions: %s\n%v", d, notes)
	}
	if len(found.GPUs) != 1 || found.GPUs[0].UUID != prior.GPUs[0].UUID || cmp.Diff(prior.GPUs[0].Baseline, found.GPUs[0].Baseline) != "" {
		t.Errorf("GPUs: %+v", found.GPUs)
	}
	p, diags := w.Plan(t, three, found)
	if diags.HasErrors() || p.Diff.Changes() || p.Diff.Drifted() {
		t.Errorf("the next plan changes something:\n%s", p)
	}
	for _, s := range p.Steps {
		if !plan.Bookkeeping(s.Do.Op) {
			t.Errorf("%s touches the world", s.ID)
		}
	}

	// With the state available, the result is the same, without duplicates.
	again, _ := salvage.Prior(salvage.Sources{Lineage: lineage, Known: prior, Live: w.Live, Remains: listed})
	if d := cmp.Diff(prior.Sessions, again.Sessions); d != "" || len(again.GPUs) != 1 {
		t.Errorf("with the state: %s\n%+v", d, again.GPUs)
	}
}

// TestImported checks that a slice which was imported, and that nothing assigns to a session, stays out of the rebuilt
// state, so that no plan destroys it: a foreign container may run in it.
func TestImported(t *testing.T) {
	w := worldtest.New(t, "h200")
	w.Lineage = lineage
	if _, err := bring(t, w, three, resource.Prior{Lineage: lineage}); err != nil {
		t.Fatal(err)
	}
	holder := &w.Host().Ledger[0].Holders[0]
	holder.Slices[1].Imported = true
	imported := holder.Slices[1]
	found, notes := salvage.Prior(salvage.Sources{Lineage: lineage, Live: w.Live})
	if len(found.Sessions) != 2 || len(found.GPUs) != 1 || slices.ContainsFunc(found.Sessions, func(s resource.PriorSession) bool { return s.Handle.UUID == imported.UUID }) {
		t.Errorf("sessions: %+v", found.Sessions)
	}
	if len(notes) != 1 || notes[0].Kind != resource.SliceOfNoState || notes[0].Slice.UUID != imported.UUID {
		t.Errorf("notes: %+v", notes)
	}
	for _, text := range []string{"", three} {
		p, diags := w.Plan(t, text, found)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, s := range p.Steps {
			if d, is := s.Do.Op.(plan.DestroySlice); is && d.Slice.Start == imported.Start {
				t.Errorf("a plan destroys the imported slice: %s", s.ID)
			}
		}
	}
	// A container that cosplay made for its session assigns it.
	body := resource.Body{Host: w.Host().Name, Runtime: "process", Session: "worker-1", SliceID: imported.UUID}
	found, notes = salvage.Prior(salvage.Sources{Lineage: lineage, Live: w.Live, Remains: []resource.Remains{{Body: body, Proven: true}}})
	if len(found.Sessions) != 3 || len(notes) != 0 {
		t.Errorf("with its container: %+v\n%v", found.Sessions, notes)
	}
}

// TestNothingProven checks that without a ledger no slice belongs to the project, whatever the labels of sessions
// state.
func TestNothingProven(t *testing.T) {
	w := worldtest.New(t, "h200")
	w.Lineage = lineage
	prior, err := bring(t, w, three, resource.Prior{Lineage: lineage})
	if err != nil {
		t.Fatal(err)
	}
	w.Host().Ledger = nil
	var listed []resource.Remains
	for _, s := range prior.Sessions {
		listed = append(listed, resource.Remains{Session: s.Session, Body: *s.Body})
	}
	found, _ := salvage.Prior(salvage.Sources{Lineage: lineage, Live: w.Live, Remains: listed})
	if len(found.Sessions) != 3 || len(found.GPUs) != 0 || len(diff.Foreign(w.Host().GPUs[0], found.Placements())) != 3 {
		t.Errorf("%+v", found)
	}
}
