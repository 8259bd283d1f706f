package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cosplay/internal/diff"
	"cosplay/internal/disguise/verify"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// filler is a fake runtime in which a program fills memory until its standard input ends.
type filler struct {
	runtime.Runtime
	says string
	code int
	err  error

	runs int
	busy atomic.Bool
}

func (f *filler) Exec(_ context.Context, _ string, p runtime.Program, s runtime.Streams) (int, error) {
	f.runs++
	if p.Argv[1] != "load" || f.err != nil {
		return 1, f.err
	}
	if f.says != "" {
		f.busy.Store(true)
		fmt.Fprint(s.Out, f.says)
		_, _ = io.Copy(io.Discard, s.In)
		f.busy.Store(false)
	}
	fmt.Fprint(s.Err, "a last word")
	return f.code, nil
}

const filling = "load.load ok\x00load.init ok\x00load.take 1048576 0\x00load.fill ok\x00"

// TestUnderLoad: the clock is read while the load runs, and the load ends after the
// readings. A load that does not run is reported with its cause.
func TestUnderLoad(t *testing.T) {
	for name, c := range map[string]struct {
		place *filler
		read  error
		want  string
	}{
		"it holds":             {&filler{says: filling}, nil, ""},
		"no CUDA":              {&filler{says: "load.load libcuda.so.1: cannot open\x00"}, nil, "CUDA: libcuda.so.1: cannot open"},
		"no memory":            {&filler{says: "load.load ok\x00load.init ok\x00load.take 1048576 2\x00"}, nil, "CUDA: error 2 for 1 MiB"},
		"cannot be run":        {&filler{err: errors.New("the container is not running")}, nil, "the container is not running"},
		"ends without words":   {&filler{code: 127}, nil, "the image has no glibc"},
		"ends badly":           {&filler{code: 139}, nil, "it ended with code 139: a last word"},
		"a clock without word": {&filler{says: filling}, errors.New("NVML: Not Supported (3)\n  Fix: none"), "the SM clock cannot be read: NVML: Not Supported (3)"},
	} {
		t.Run(name, func(t *testing.T) {
			idle := 0
			load := underLoad(context.Background(), c.place, "w-0", []string{"/probe", "load"}, 1575, func(context.Context) (resource.ClockSample, error) {
				if !c.place.busy.Load() {
					idle++
				}
				return resource.ClockSample{MHz: 1575}, c.read
			})
			if !strings.Contains(load.Failed, c.want) || (c.want == "") != (load.Failed == "") {
				t.Errorf("failed: %q, want %q", load.Failed, c.want)
			}
			if mhz, known := load.MHz(1575); c.want == "" && (mhz != 1575 || !known) || idle > 0 {
				t.Errorf("%d MHz, known %t; %d readings without load", mhz, known, idle)
			}
			if c.place.busy.Load() {
				t.Error("the load still runs")
			}
		})
	}
}

// silent is a fake runtime in which no program ends before its time is up.
type silent struct{ runtime.Runtime }

func (silent) Exec(ctx context.Context, _ string, _ runtime.Program, _ runtime.Streams) (int, error) {
	<-ctx.Done()
	return 1, ctx.Err()
}

// TestSilentPrograms: what does not end in time is named, with the time, and not by Go's words.
func TestSilentPrograms(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if load := underLoad(ctx, silent{}, "w-0", nil, 1575, nil); load.Failed != "the load has not begun within 1m0s" {
		t.Errorf("the load: %q", load.Failed)
	}
	if _, err := execute(ctx, silent{}, "w-0")(nil, nil); err == nil || !strings.Contains(err.Error(), "have not ended within 2m0s") {
		t.Errorf("the checks: %v", err)
	}
}

// TestAGPUIsLoadedOnce by the first of its sessions that can; all of them get the
// result.
func TestAGPUIsLoadedOnce(t *testing.T) {
	read := func(context.Context) (resource.ClockSample, error) { return resource.ClockSample{MHz: 1575}, nil }
	locked := func(places ...*filler) (all []*asked) {
		for _, place := range places {
			lock := 1575
			all = append(all, &asked{place: place, wanted: verify.Wanted{Applied: resource.Settings{}.With(resource.SMClock, lock)}})
		}
		return all
	}
	bare, full, spare := &filler{code: 127}, &filler{says: filling}, &filler{says: filling}
	sessions := locked(bare, full, spare)
	loadGPU(context.Background(), sessions, read)
	if bare.runs != 1 || full.runs != 1 || spare.runs != 0 {
		t.Errorf("loads: %d, %d, %d", bare.runs, full.runs, spare.runs)
	}
	for i, a := range sessions {
		if l := a.lock(); l == nil || !l.Proven() {
			t.Errorf("session %d: %+v", i, l)
		}
	}
	alone := locked(&filler{code: 127})
	loadGPU(context.Background(), alone, read)
	if l := alone[0].lock(); l != nil || alone[0].observed.Load.Failed == "" {
		t.Errorf("without a load: %+v, %q", l, alone[0].observed.Load.Failed)
	}
}

// TestWithLocks: a result is recorded only for the lock that was tested, and not for one
// that was set meanwhile.
func TestWithLocks(t *testing.T) {
	prior := func(lock, refuted int) resource.Prior {
		return resource.Prior{GPUs: []resource.PriorGPU{{Host: "lab", UUID: "GPU-0", Applied: resource.Settings{}.With(resource.SMClock, lock), ClockRefutedMHz: refuted}}}
	}
	for _, c := range []struct {
		lock, refuted, found, want int
		unmanaged                  bool
	}{
		{lock: 1575, found: 1575}, {lock: 1575, found: 1980, want: 1980}, {lock: 1575, refuted: 1980, found: 900, want: 900},
		{lock: 1575, refuted: 1980, found: 1575}, {lock: 1200, found: 1980},
		{lock: 1575, found: 1980, unmanaged: true}, {lock: 1575, refuted: 1980, found: 1980, unmanaged: true},
	} {
		before := prior(c.lock, c.refuted)
		noted, changed := withLocks(before, []ClockLock{{Host: "lab", GPU: "GPU-0", LockMHz: 1575, FoundMHz: c.found, Unmanaged: c.unmanaged}})
		if got := noted.GPUs[0].ClockRefutedMHz; got != c.want || changed != (c.want != c.refuted) || before.GPUs[0].ClockRefutedMHz != c.refuted {
			t.Errorf("%+v: noted %d, changed %t, before %d", c, got, changed, before.GPUs[0].ClockRefutedMHz)
		}
	}
}

// TestDriftOfLocks: a refuted lock is drift once, and a proven lock is no longer listed as
// unproven.
func TestDriftOfLocks(t *testing.T) {
	found := func(mhz int) []Verified {
		one := Verified{Locks: []ClockLock{{Host: "lab", GPU: "GPU-0", LockMHz: 1575, FoundMHz: mhz}}}
		return []Verified{one, one, {}}
	}
	before := diff.Diff{Unproven: []diff.UnprovenLock{{Host: "lab", GPU: "GPU-0", MHz: 1575}, {Host: "lab", GPU: "GPU-1", MHz: 1575}}}
	for mhz, drifted := range map[int]int{1575: 0, 1980: 1} {
		d := WithBroken(before, found(mhz))
		if len(d.Drift) != drifted || len(d.Unproven) != 1 || d.Unproven[0].GPU != "GPU-1" {
			t.Errorf("at %d MHz: %+v, unproven %+v", mhz, d.Drift, d.Unproven)
		}
	}
}
