package disguise_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cosplay/internal/disguise"
	"cosplay/internal/resource"
)

// A sound file is kept and is writable for all users of the session.
func TestMakeUsage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage")
	check(t, disguise.MakeUsage(path, 1))
	before, err := os.Stat(path)
	check(t, err)
	if before.Mode().Perm() != 0o666 {
		t.Errorf("its mode is %v", before.Mode())
	}
	check(t, disguise.MakeUsage(path, 1))
	after, err := os.Stat(path)
	check(t, err)
	if !os.SameFile(before, after) {
		t.Error("a sound file was replaced")
	}
	check(t, os.WriteFile(path, []byte("nonsense"), 0o666))
	check(t, os.Chmod(path, 0o600))
	if _, err := disguise.ReadUsage(path); err == nil || !strings.Contains(err.Error(), "replace the session") {
		t.Errorf("of nonsense the error is %v", err)
	}
	check(t, disguise.MakeUsage(path, 1))
	if u, err := disguise.ReadUsage(path); err != nil || u.Total != 0 {
		t.Errorf("a new file reports %+v, %v", u, err)
	}
	if replaced, err := os.Stat(path); err != nil || replaced.Mode().Perm() != 0o666 {
		t.Errorf("a new file is %+v, %v", replaced, err)
	}
}

// A program of the session can write any values: impossible numbers are reported and not used.
func TestSpoiledUsage(t *testing.T) {
	s := newSession(t).shared()
	path := filepath.Join(s.dir, disguise.UsageFile)
	for at := range int64(4) { // total, overhead, peak, refused
		s.write(t, map[int64]uint64{atTotal + 8*at: 1<<64 - 5})
		if _, err := disguise.ReadUsage(path); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("of number %d the error is %v", at, err)
		}
		if use := disguise.LastUse(path); !use.IsZero() {
			t.Errorf("number %d makes a use of %+v", at, use)
		}
		check(t, disguise.MakeUsage(path, 1))
		if _, err := disguise.ReadUsage(path); err != nil {
			t.Errorf("number %d is not repaired: %v", at, err)
		}
	}
}

// Without the file the limit still applies, to each program separately.
func TestWithoutUsage(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	check(t, os.Remove(filepath.Join(s.dir, "usage")))
	first, second := s.hold(t, program), s.hold(t, program)
	for _, h := range []*holder{first, second} {
		h.tell("take 6144", "0")
		h.tell("bytes 1", outOfMemory)
		h.tell("free", "0")
		h.tell("info", "6144 of 6144")
	}
}

// A process that frees memory, allocates again and gets as much did not run out of memory. A smaller allocation, or
// one by another process, proves nothing.
func TestOvercome(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	first, second := s.hold(t, program), s.hold(t, program)
	overcome := func(want, of int64) {
		t.Helper()
		if u := s.usage(); u.Overcome != want || u.Refused != of {
			t.Errorf("%d of %d refusals are overcome, want %d of %d", u.Overcome, u.Refused, want, of)
		}
	}
	second.tell("take 3000", "0")
	first.tell("take 3200", outOfMemory)
	first.tell("take 3300", outOfMemory)
	first.tell("take 3100", "0")
	overcome(0, 2)
	first.tell("free", "0")
	second.kill()
	third := s.hold(t, program)
	third.tell("take 5000", "0")
	third.kill()
	overcome(0, 2)
	first.tell("take 3300", "0")
	overcome(2, 2)
	first.tell("take 3000", outOfMemory)
	first.kill()
	s.hold(t, program).tell("take 3000", "0")
	overcome(2, 3)
}

// The use of a session is reported in whole MiB, and not at all if the file cannot be read.
func TestLastUse(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	h := s.hold(t, program)
	h.tell("take 5812", "0")
	h.tell("bytes 1", "0")
	h.tell("take 1000", outOfMemory)
	h.tell("take 2000", outOfMemory)
	h.kill()
	path := filepath.Join(s.dir, "usage")
	if used, want := disguise.LastUse(path), (resource.Use{PeakMiB: 5813, OutOfMemory: 2}); !reflect.DeepEqual(used, want) {
		t.Errorf("it used %+v, want %+v", used, want)
	}
	write(t, filepath.Join(s.dir, disguise.ReportFile), slot("{}")+slot(`{"v":1,"id":"a","pid":7,"devices":{"0":[1048576,4194304]}}`))
	if used := disguise.LastUse(path); used.CacheMiB != 3 {
		t.Errorf("its cache was %d MiB, want 3", used.CacheMiB)
	}
	check(t, os.Truncate(path, 100))
	for _, path := range []string{path, path + ".none"} {
		if used := disguise.LastUse(path); !used.IsZero() {
			t.Errorf("of %s it reports %+v", path, used)
		}
	}
}
