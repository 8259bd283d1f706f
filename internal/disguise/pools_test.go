package disguise_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"cosplay/driver"
)

// Unused memory that a pool keeps is released for other allocations, including those of another pool.
func TestPoolsMakeRoom(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	h := s.hold(t, program)
	h.tell("keep 4000", "0")
	s.wantUsage(t, "total 4000 overhead 0 peak 4000 refused 0 processes 1")
	h.tell("take-async 5984", "0")
	h.tell("free-async", "0")
	h.tell("keep 4000", "0")
	h.tell("take 6144", "0")
}

// Unmapped memory is free at once, wherever in the range it was.
func TestUnmappedAtOnce(t *testing.T) {
	s := newSession(t).shared()
	h := s.hold(t, compiled(t, "holder"))
	h.tell("gaps 100", "0")
	s.wantUsage(t, "total 0 overhead 0 peak 800 refused 0 processes 0")
}

// A graph is not launched if its memory no longer fits, even if it fitted when its node was added.
func TestGraphsShareTheCap(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	first, second := s.hold(t, program), s.hold(t, program)
	first.tell("graphs 2500", "000 000 222")
	second.tell("take 1145", outOfMemory)
	second.tell("take 1144", "0")
	s.wantUsage(t, "total 6144 overhead 0 peak 6144 refused 4 processes 2")
}

// trueUse returns the use of a session's slice that the driver itself reports, without the test's own context.
func (s cudaSession) trueUse(t *testing.T) int {
	t.Helper()
	watcher := holdOn(t, s.command(compiled(t, "holder"), mustRead(t, filepath.Join(s.dir, "real", driver.CUDA))))
	defer watcher.kill()
	var free, all int
	if _, err := fmt.Sscanf(watcher.ask("info"), "%d of %d", &free, &all); err != nil {
		t.Fatal(err)
	}
	return all - free - contextMiB
}

const contextMiB = 300 // of a simulated context

// A refused graph keeps no memory until it is destroyed, and a graph that has released its memory is checked again at
// the next launch.
func TestRefusedGraphsHoldNothing(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	h := s.hold(t, program)
	for range 3 {
		h.tell("graph 2500", "0")
	}
	h.tell("launch 0", "0")
	h.tell("launch 1", "0")
	for range 3 {
		h.tell("launch 2", outOfMemory)
		if got := s.trueUse(t); got != contextMiB+5000 {
			t.Fatalf("%d MiB are in use, want %d", got, contextMiB+5000)
		}
	}
	h.tell("take 1145", outOfMemory)
	h.tell("take 1144", "0")
	h.kill()
	h = s.hold(t, program)
	h.tell("passing 2500", "0")
	h.tell("launch 0", "0")
	h.tell("trim", "0")
	h.tell("take 6144", "0")
	h.tell("launch 0", outOfMemory)
	if got := s.trueUse(t); got != contextMiB+6144 {
		t.Errorf("%d MiB are in use, want %d", got, contextMiB+6144)
	}
	h.tell("free", "0")
	h.tell("launch 0", "0")
	h.kill()
	h = s.hold(t, program)
	for range 3 {
		h.tell("passing 3000", "0")
	}
	for _, turn := range []string{"0", "1", "2", "0"} { // memory that the other pools keep is released
		h.tell("launch "+turn, "0")
		if got := s.trueUse(t); got > contextMiB+6144 {
			t.Errorf("%d MiB are in use, want at most %d", got, contextMiB+6144)
		}
	}
}
