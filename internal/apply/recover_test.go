package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/apply"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// errCrash is what everything answers once the process is dead.
var errCrash = errors.New("crash")

// crash makes world and journal stop dead at the n-th point, where the points
// are each write of the journal and each change of the world, in order.
func crash(w *worldtest.World, j *worldtest.Journal, n int64) *atomic.Int64 {
	var points atomic.Int64
	at := func() error {
		if points.Add(1) > n {
			return errCrash
		}
		return nil
	}
	w.Fault = func(string) error { return at() }
	j.Fault = at
	return &points
}

// TestCrashAtEveryPoint: a run is interrupted right before each journal write and each change, which is also right after
// the one before. After recovery apply converges and destroy leaves the world as it was, also if the host could not be read
// at the recovery, and answers again afterwards.
func TestCrashAtEveryPoint(t *testing.T) {
	const two = `host "lab" {}
session "worker" {
  count  = 2
  target = "3060"
}`
	for _, story := range []struct{ name, before, then string }{
		{"create", "", three},
		{"destroy", three, ""},
		{"replace", three, two},
	} {
		for _, answers := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, answers %t", story.name, answers), func(t *testing.T) {
				cut := 0
				for n := int64(0); ; n++ {
					w := worldtest.New(t, "h200")
					start := w.String()
					prior := must(t, w, story.before, resource.Prior{})
					j := &worldtest.Journal{}
					points := crash(w, j, n)
					if _, err := run(t, w, j, story.then, prior, 1); err == nil && points.Load() <= n {
						break // the run was through before
					}
					cut++
					w.Fault = nil
					now := w.Live
					if !answers {
						now = resource.Live{Hosts: []resource.Host{{Name: worldtest.HostName, BootID: prior.BootIDs[worldtest.HostName], Bodies: prior.Bodies(worldtest.HostName), Unreachable: "no route"}}}
					}
					recovered, _ := apply.Recover(prior, j.Entries, now)
					recovered = apply.Reconsider(recovered, w.Live)

					// One way on: the same again.
					after := must(t, w, story.then, recovered)
					if p, _ := w.Plan(t, story.then, after); !p.Empty() {
						t.Fatalf("cut at %d: apply does not converge:\n%s", n, p)
					}
					if n := len(w.GPU("GPU-0").Slices); n != len(after.Sessions) {
						t.Fatalf("cut at %d: %d slices for %d sessions", cut, n, len(after.Sessions))
					}
					// And back to nothing.
					must(t, w, "", after)
					if d := cmp.Diff(start, w.String()); d != "" {
						t.Fatalf("cut at %d: the world is not as it was:\n%s", n, d)
					}
				}
				t.Logf("%d points", cut)
				if cut < 20 {
					t.Errorf("only %d points: the test proves too little", cut)
				}
			})
		}
	}
}

// TestJournalNamesOthersSlices: only a foreign slice in the journal proves that a slice is
// foreign; a slice of the project may exist as it was before.
func TestJournalNamesOthersSlices(t *testing.T) {
	w := worldtest.New(t, "h200")
	prior := must(t, w, three, resource.Prior{})
	theirs := resource.LiveSlice{Slice: resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 0, Size: 1}, Handle: resource.Handle{GPUInstance: 7, UUID: "MIG-theirs"}}
	g := w.GPU("GPU-0")
	g.Slices = append(g.Slices, theirs)
	w.Remove("worker-0")
	j := &worldtest.Journal{}
	if _, err := run(t, w, j, three, prior, 1); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]resource.LiveSlice{theirs}, j.Entries[0].Slices); d != "" {
		t.Error(d)
	}
}

// firstSlice is the step that makes the slice of the first of three.
func firstSlice(t *testing.T, w *worldtest.World) (plan.Step, resource.Slice) {
	t.Helper()
	p, _ := w.Plan(t, three, resource.Prior{})
	for _, s := range p.Steps {
		if strings.HasSuffix(s.ID, "[0]/slice") {
			return s, s.Do.Op.(plan.CreateSlice).Session.Slice
		}
	}
	t.Fatalf("no such step in\n%s", p)
	return plan.Step{}, resource.Slice{}
}

// TestRecoveryLeavesNeighbours: a slice that was there before the run, that the ledger does not have for the project, or that
// is not the one that was being made, is not taken over.
func TestRecoveryLeavesNeighbours(t *testing.T) {
	w := worldtest.New(t, "h200")
	j := &worldtest.Journal{}
	create, want := firstSlice(t, w)
	before := resource.LiveSlice{Slice: want, Handle: resource.Handle{GPUInstance: 7, UUID: "MIG-before"}}
	half := resource.LiveSlice{Slice: want, Handle: resource.Handle{GPUInstance: 7}}
	made := resource.LiveSlice{Slice: want, Handle: resource.Handle{GPUInstance: 8, UUID: "MIG-new"}}
	begin := apply.Entry{Event: apply.Begin, Lineage: "us", BootIDs: map[string]string{"lab": "boot-1"}, Slices: []resource.LiveSlice{before, half}}
	j.Entries = []apply.Entry{begin, {Event: apply.Started, Step: create.ID, Op: &create.Do}}
	seven, eight := 7, 8

	for name, test := range map[string]struct {
		there     resource.LiveSlice
		noted     resource.LiveSlice // in the ledger
		processes []resource.Process
		reboot    bool
		failed    *apply.Entry
		own       bool
	}{
		"that was there before":               {there: before},
		"that was there, half made, before":   {there: half},
		"of another kind":                     {there: resource.LiveSlice{Slice: resource.Slice{Host: want.Host, GPU: want.GPU, Profile: "2g.35gb", Start: want.Start, Size: 2}, Handle: resource.Handle{UUID: "MIG-new"}}},
		"in another place":                    {there: resource.LiveSlice{Slice: resource.Slice{Host: want.Host, GPU: want.GPU, Profile: want.Profile, Start: want.Start + 1, Size: 1}, Handle: resource.Handle{UUID: "MIG-new"}}},
		"that the ledger does not know":       {there: made},
		"that the ledger knows as another":    {there: made, noted: before},
		"that a process uses":                 {there: made, noted: made, processes: []resource.Process{{PID: 1, GPUInstance: &eight}}},
		"made after a reboot":                 {there: made, noted: made, reboot: true},
		"made by another, the driver said so": {there: made, noted: made, failed: &apply.Entry{Event: apply.Failed, Step: create.ID, Sure: true}},
		"that is new":                         {there: made, noted: resource.LiveSlice{Slice: want}, own: true},
		"that is new and known":               {there: made, noted: made, own: true},
		"that is new, others use theirs":      {there: made, noted: made, processes: []resource.Process{{PID: 1, GPUInstance: &seven}}, own: true},
		"that the driver said is left":        {there: half, failed: &apply.Entry{Event: apply.Failed, Step: create.ID, Sure: true, Made: &plan.Made{Handle: &half.Handle}}, own: true},
	} {
		w := worldtest.New(t, "h200")
		g := w.GPU("GPU-0")
		g.Slices, g.Processes = []resource.LiveSlice{test.there}, test.processes
		w.Host().Ledger = []resource.Page{{UUID: "GPU-0", Holders: []resource.Holder{{Lineage: "us", Slices: []resource.LiveSlice{test.noted}}}}}
		if test.reboot {
			w.Host().BootID = "boot-2"
		}
		entries := j.Entries
		if test.failed != nil {
			entries = append(entries[:2:2], *test.failed)
		}
		got, notes := apply.Recover(resource.Prior{}, entries, w.Live)
		if took := len(got.Sessions) == 1; took != test.own {
			t.Errorf("a slice %s: taken over %v, want %v (%v)", name, took, test.own, notes)
		}
		if len(notes) != 1 {
			t.Errorf("a slice %s: notes %v", name, notes)
		}
	}
}

// TestUnreadDaemon: whether an MPS daemon has been stopped is not known of a host that cannot be read, so that the state keeps it.
func TestUnreadDaemon(t *testing.T) {
	daemon := resource.MPS{Folder: "/mps/gpu"}
	held := resource.PriorGPU{Host: "lab", UUID: "GPU-0"}
	held.Daemons = held.With(daemon)
	prior := resource.Prior{Lineage: "one", GPUs: []resource.PriorGPU{held}}
	entries := []apply.Entry{{Event: apply.Begin, Lineage: "one"}, {Event: apply.Started, Step: "stop", Op: &plan.OpJSON{Op: plan.StopMPS{Host: "lab", GPU: "GPU-0", MPS: daemon}}}}
	for why, kept := range map[string]int{"": 0, "no route": 1} {
		next, _ := apply.Recover(prior, entries, resource.Live{Hosts: []resource.Host{{Name: "lab", Unreachable: why}}})
		if n := len(next.GPUs[0].All()); n != kept {
			t.Errorf("unreachable %q: the state has %d daemons", why, n)
		}
	}
}
