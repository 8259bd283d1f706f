package ledger

import (
	"testing"

	"cosplay/internal/resource"
)

// TestEmptyHolder: a project that joins a GPU and creates nothing there does not bind the one that was there before:
// that one changes settings, leaves, and restores the baseline. With a slice, it does.
func TestEmptyHolder(t *testing.T) {
	for _, joined := range []struct {
		since  string
		slices []resource.LiveSlice
		binds  bool
	}{
		{"2026-01-01T00:00:09Z", nil, false},
		{"2026-01-01T00:00:09Z", []resource.LiveSlice{{Slice: resource.Slice{Profile: "1g.18gb"}}}, true},
		{"2025-01-01T00:00:00Z", nil, true},
	} {
		page := func() *resource.Page {
			return &resource.Page{UUID: "GPU-1", Baseline: resource.Settings{}.With(resource.PowerLimit, 700_000), Set: resource.Settings{}.With(resource.PowerLimit, 300_000),
				Holders: []resource.Holder{{Lineage: "a", User: "ann", Since: "2026-01-01T00:00:00Z",
					Slices: []resource.LiveSlice{{Slice: resource.Slice{Profile: "1g.18gb", Start: 3}, Handle: resource.Handle{UUID: "MIG-1"}}}}, {Lineage: "b", User: "bob", Since: joined.since, Slices: joined.slices}}}
		}
		if err := MaySet(page(), "a", resource.Settings{}.With(resource.PowerLimit, 200_000)); (err != nil) != joined.binds {
			t.Errorf("%+v, a change: %v", joined, err)
		}
		g := page()
		if err := Leave(g, "a"); (err != nil) != joined.binds {
			t.Errorf("%+v, leaving: %v", joined, err)
		}
		if err := MaySet(g, "b", resource.Settings{}.With(resource.PowerLimit, 200_000)); err == nil {
			t.Errorf("%+v: the guest may change the GPU", joined)
		}
		g = page()
		err := Release(g, g.Holders[0], Parting{Found: &Found{Settings: resource.Settings{}.With(resource.PowerLimit, 300_000)}})
		if refused := err != nil; refused == joined.binds { // without others, it has to restore the baseline first
			t.Errorf("%+v, release: %v", joined, err)
		}
	}
}

// TestHolderClock: a project that joined by a clock that was ahead was there before one that joins later.
func TestHolderClock(t *testing.T) {
	g := &resource.Page{UUID: "GPU-1", Holders: []resource.Holder{{Lineage: "a", User: "ann", Since: "2026-01-11T00:00:00Z"}}}
	if err := Hold(g, resource.Holder{Lineage: "b", User: "bob", Since: "2026-01-01T00:00:00Z"}, Take{Others: []string{"a"}}, nil); err != nil {
		t.Fatal(err)
	}
	if len(g.Binding("b")) != 1 {
		t.Errorf("the first project does not bind the second: %+v", g.Holders)
	}
}

// TestAfterReboot: each of several projects may set again what they had before a reboot, and nothing else; the first that does
// ends that.
func TestAfterReboot(t *testing.T) {
	power := func(watts int) resource.Settings { return resource.Settings{}.With(resource.PowerLimit, watts*1000) }
	slice := []resource.LiveSlice{{Slice: resource.Slice{Profile: "1g.18gb"}}}
	lock := resource.Settings{}.With(resource.SMClock, 1575)
	g := &resource.Page{UUID: "GPU-1", Baseline: power(700), Set: power(300).With(resource.SMClock, 1575), BootID: "one", Lock: &resource.ClockLock{MHz: 1575, BootID: "one", Done: true},
		Holders: []resource.Holder{{Lineage: "a", User: "ann", Slices: slice}, {Lineage: "b", User: "bob", Slices: slice}}}
	rebooted(g, &Found{Settings: power(700), BootID: "two"})
	for _, c := range []struct {
		s   resource.Settings
		may bool
	}{{power(300), true}, {power(299), false}, {power(700), false}, {lock, true}, {lock.With(resource.SMClock, 0), false}} {
		if err := MaySet(g, "b", c.s); (err == nil) != c.may {
			t.Errorf("%v: %v", c.s, err)
		}
	}
	Attempt(g, power(300), "two")
	Settled(g, power(700))  // the driver has failed
	Attempt(g, lock, "two") // and this command was killed
	if err := MaySet(g, "a", power(300)); err != nil {
		t.Errorf("after a failure: %v", err)
	}
	for _, s := range []resource.Settings{power(300), lock} {
		Attempt(g, s, "two")
		Settled(g, s)
	}
	if g.Undone != (resource.Settings{}) || !g.Set.Equal(power(300).With(resource.SMClock, 1575)) {
		t.Errorf("after it was set again: %+v", g)
	}
	rebooted(g, &Found{Settings: power(700), BootID: "three"})
	if err := Release(g, g.Holders[0], Parting{AsItIs: true}); err != nil {
		t.Fatal(err)
	}
	if g.Undone != (resource.Settings{}) {
		t.Errorf("alone, it is bound to what both had: %+v", g.Undone)
	}
}
