package place

import (
	"strings"
	"testing"

	"cosplay/internal/resource"
)

func at(g GPU, profile string, start int) *resource.Slice {
	slice := foreign(g, profile, start).Slice
	return &slice
}

func only(t *testing.T, r Result, name string) Placed {
	t.Helper()
	for _, p := range r.Placed {
		if p.Address == resource.Nth(name, 0) {
			return p
		}
	}
	t.Fatalf("%s is not placed:\n%s", name, r)
	return Placed{}
}

// TestKeptWhereItCannotStay moves only the session that has lost its slice, and reports the reason.
func TestKeptWhereItCannotStay(t *testing.T) {
	lost := func([]GPU) *resource.Slice {
		return &resource.Slice{Host: "lab", GPU: "GPU-lost", Profile: "1g.18gb", Size: 1}
	}
	cases := []struct {
		name   string
		change func(*GPU)
		kept   func([]GPU) *resource.Slice
		want   string
	}{
		{"the GPU is lost", func(*GPU) {}, lost, "its GPU is not there"},
		{"others took the slot", func(g *GPU) {
			g.MIG = true
			g.Foreign = []resource.LiveSlice{foreign(*g, "4g.71gb", 0)}
		}, func(gpus []GPU) *resource.Slice { return at(gpus[0], "1g.18gb", 2) }, "the foreign slice 4g.71gb at slot 0 overlaps it"},
		{"MIG mode was switched off for good", func(g *GPU) { g.Fixed[resource.MIGMode] = true },
			func(gpus []GPU) *resource.Slice { return at(gpus[0], "1g.18gb", 2) }, "GPU 0 is not in MIG mode"},
		{"no such place", func(*GPU) {}, func(gpus []GPU) *resource.Slice {
			s := at(gpus[0], "3g.71gb", 0)
			s.Start = 1
			return s
		}, "no place for a 3g.71gb at slot 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			gpus, requests := rackWith(c.change, "h200", "h200"), ask("lab", "a", 1, "2060")
			requests[0].Kept = c.kept(gpus)
			r := Place(gpus, requests)
			if p := only(t, r, "a"); p.Slice == *requests[0].Kept {
				t.Errorf("it stays:\n%s", r)
			}
			if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Text, c.want) {
				t.Errorf("warnings %v, want %q", r.Warnings, c.want)
			}
		})
	}
}

// TestNewcomersJoin fills a GPU in use before it uses an empty one.
func TestNewcomersJoin(t *testing.T) {
	gpus, requests := rack("lab", "h200", "h200", "h200"), ask("lab", "a", 7, "2060")
	lock := 1575
	gpus[2].MIG, gpus[2].LockMHz = true, &lock
	requests[0].Kept = at(gpus[2], "1g.18gb", 3)
	r := Place(gpus, requests)
	check(t, gpus, requests, r)
	if len(r.GPUs) != 1 || r.GPUs[0].UUID != "GPU-lab2" {
		t.Errorf("not all on GPU 2:\n%s", r)
	}
}

// TestNewcomersRespectOccupants leaves a GPU out if newcomers would move its clock too far, even if no other GPU is
// free.
func TestNewcomersRespectOccupants(t *testing.T) {
	gpus, requests := rack("lab", "h200", "h200"), join(ask("lab", "old", 1, "1660"), ask("lab", "new", 1, "3090"))
	lock := 1230
	gpus[0].MIG, gpus[0].LockMHz = true, &lock
	requests[0].Kept = at(gpus[0], "1g.18gb", 6)
	r := Place(gpus, requests)
	if p := only(t, r, "new"); p.Slice.GPU != "GPU-lab1" {
		t.Errorf("they share:\n%s", r)
	}
	alone := Place(gpus[:1], requests)
	check(t, gpus[:1], requests, alone)
	if old := only(t, alone, "old"); old.Fit.Error(resource.PreferFP32) > 0.11 {
		t.Errorf("the session that was there pays:\n%s", alone)
	}
}

// TestTheLockStays keeps the clock lock even if the remaining sessions would fit better without it.
func TestTheLockStays(t *testing.T) {
	gpus, requests := rack("lab", "h200"), ask("lab", "a", 1, "2060")
	for _, lock := range []int{0, 1500} {
		gpus[0].MIG, gpus[0].LockMHz = true, &lock
		requests[0].Kept = at(gpus[0], "1g.18gb", 0)
		if r := Place(gpus, requests); r.GPUs[0].Settings.Value(resource.SMClock) != lock {
			t.Errorf("lock %d moves:\n%s", lock, r)
		}
	}
}

// TestUntouched changes nothing on GPUs without sessions.
func TestUntouched(t *testing.T) {
	gpus := rack("lab", "h200", "h200", "l40s")
	if r := Place(gpus, nil); r.String() != "" {
		t.Errorf("an empty configuration does\n%s", r)
	}
	if r := Place(gpus, ask("lab", "a", 3, "2060")); len(r.GPUs) != 1 {
		t.Errorf("more than one GPU is set up:\n%s", r)
	}
	if r := Place(nil, ask("lab", "a", 3, "2060")); len(r.Refused) != 1 || len(r.Refused[0].Addresses) != 3 {
		t.Errorf("sessions without GPUs:\n%s", r)
	}
}
