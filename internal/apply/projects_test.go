package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// turn is one project's apply or destroy.
type turn struct {
	project string
	text    string // "" destroys
}

// wanted is what the two projects ask of the one GPU, by turns; there is room for both, whatever they ask.
var wanted = map[string][]string{
	"a": {three, "host \"lab\" {}\nsession \"worker\" { target = \"3060\" }"},
	"b": {"host \"lab\" {}\nsession \"other\" { target = \"3060\" }", "host \"lab\" { slow_neighbours = true }\nsession \"other\" { target = \"2060\" }"},
}

// TestTwoProjects: in whatever order two projects acquire a GPU, change and leave, the baseline
// comes back with the last of them and never before, and neither changes what the other was promised.
func TestTwoProjects(t *testing.T) {
	var turns []turn
	for _, project := range []string{"a", "b"} {
		for _, text := range append(wanted[project], "") {
			turns = append(turns, turn{project, text})
		}
	}
	orders := 0
	for i := range pow(len(turns), 4) {
		var order []turn
		for n := i; len(order) < 4; n /= len(turns) {
			order = append(order, turns[n%len(turns)])
		}
		orders++
		inTurns(t, order)
	}
	t.Logf("%d orders", orders)
}

func pow(base, n int) int {
	all := 1
	for range n {
		all *= base
	}
	return all
}

// TestWaitingBlocksNoOther: while a project waits for a foreign slice before it can give MIG mode back,
// another may come, and the last one out puts it all back.
func TestWaitingBlocksNoOther(t *testing.T) {
	w := worldtest.New(t, "h200")
	start := w.String()
	w.Lineage = "a"
	a := must(t, w, three, resource.Prior{Lineage: "a"})
	g := w.GPU("GPU-0")
	g.Slices = append(g.Slices, resource.LiveSlice{Slice: resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 0, Size: 1}, Handle: resource.Handle{GPUInstance: 99, UUID: "MIG-theirs"}})
	a = must(t, w, "", a)
	if held, _ := w.Live.Page("lab", "GPU-0"); !g.MIG || len(a.GPUs) != 1 || held.Leaving != "" {
		t.Fatalf("MIG mode does not wait: %s, %+v", w, held)
	}
	w.Lineage = "b"
	b := must(t, w, wanted["b"][0], resource.Prior{Lineage: "b"})
	g.Slices = slices.DeleteFunc(g.Slices, func(s resource.LiveSlice) bool { return s.UUID == "MIG-theirs" })
	w.Lineage = "a"
	must(t, w, "", a)
	if !g.MIG {
		t.Error("MIG mode was switched off under the other project")
	}
	w.Lineage = "b"
	must(t, w, "", b)
	if d := cmp.Diff(start, w.String()); d != "" {
		t.Error(d)
	}
}

func inTurns(t *testing.T, order []turn) {
	t.Helper()
	w := worldtest.New(t, "h200")
	start := w.String()
	states := map[string]resource.Prior{"a": {Lineage: "a"}, "b": {Lineage: "b"}}
	clocks := map[string]int{} // what the fits of a project count on
	var story []string
	for _, o := range append(order, turn{"a", ""}, turn{"b", ""}) {
		story = append(story, fmt.Sprintf("%s: %q", o.project, o.text))
		w.Lineage = o.project
		states[o.project] = must(t, w, o.text, states[o.project])
		other := map[string]string{"a": "b", "b": "a"}[o.project]
		for project, state := range states {
			delete(clocks, project)
			for _, s := range state.Sessions {
				clocks[project] = s.Fit.ClockMHz
			}
		}
		if clock, runs := clocks[other]; runs && w.GPU("GPU-0").SMClockMHz != clock {
			t.Fatalf("%s counts on %d MHz and has %d after\n%s\n%s", other, clock, w.GPU("GPU-0").SMClockMHz, strings.Join(story, "\n"), w)
		}
		held := len(states["a"].Sessions)+len(states["b"].Sessions) > 0
		if back := w.String() == start; back == held {
			t.Fatalf("as it was found: %v, sessions: %v, after\n%s\n%s", back, held, strings.Join(story, "\n"), w)
		}
		w.Lineage = o.project
		if p, _ := w.Plan(t, o.text, states[o.project]); !p.Empty() {
			t.Fatalf("%s has something left to do:\n%s\nafter\n%s", o.project, p, strings.Join(story, "\n"))
		}
	}
	if d := cmp.Diff(start, w.String()); d != "" {
		t.Fatalf("not as it was found after\n%s\n%s", strings.Join(story, "\n"), d)
	}
}

// TestLockLeftBehind: the clock lock of a project that has left is lifted by the
// one that stays, when it wants none; and by its destroy.
func TestLockLeftBehind(t *testing.T) {
	w := worldtest.New(t, "h200")
	start := w.String()
	unlocked := w.GPU("GPU-0").SMClockMHz
	states := map[string]resource.Prior{"a": {Lineage: "a"}, "b": {Lineage: "b"}}
	turns := func(turns ...turn) {
		for _, o := range turns {
			w.Lineage = o.project
			states[o.project] = must(t, w, o.text, states[o.project])
		}
	}
	const locked, full = "host \"lab\" {}\nsession \"other\" { target = \"2060\" }", "host \"lab\" {}\nsession \"other\" { target = \"2080-ti\" }"
	turns(turn{"a", three}, turn{"b", locked}, turn{"a", ""})
	if w.GPU("GPU-0").SMClockMHz == unlocked {
		t.Fatal("the lock was lifted with a, though b needs it")
	}
	turns(turn{"b", full})
	if now := w.GPU("GPU-0").SMClockMHz; now != unlocked {
		t.Errorf("b wants no lock, and the clock is %d MHz", now)
	}
	turns(turn{"b", ""}, turn{"a", three}, turn{"b", locked}, turn{"a", ""}, turn{"b", ""})
	if d := cmp.Diff(start, w.String()); d != "" {
		t.Error(d)
	}
}
