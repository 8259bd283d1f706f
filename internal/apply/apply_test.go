package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/apply"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

const three = `host "lab" {}
session "worker" {
  count  = 3
  target = "2060"
}`

// run carries out what a configuration asks for, on a world that may misbehave.
func run(t *testing.T, w *worldtest.World, j *worldtest.Journal, text string, prior resource.Prior, parallelism int) (apply.Result, error) {
	t.Helper()
	p, diags := w.Plan(t, text, prior)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	r := w.Run(j, parallelism)
	return r.Execute(context.Background(), p, prior, w.Live)
}

// must carries it out without a failure.
func must(t *testing.T, w *worldtest.World, text string, prior resource.Prior) resource.Prior {
	t.Helper()
	result, err := run(t, w, &worldtest.Journal{}, text, prior, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Failures {
		t.Fatal(f)
	}
	return result.Prior
}

var errRefused = errors.New("refused")

// refuse makes the world refuse whatever begins so.
func refuse(what string) func(string) error {
	return func(now string) error {
		if strings.HasPrefix(now, what) {
			return errRefused
		}
		return nil
	}
}

// TestFailureUndoesItsSessionAlone: what the failing session has is taken back,
// the others stay, and the state is correct.
func TestFailureUndoesItsSessionAlone(t *testing.T) {
	w := worldtest.New(t, "h200")
	start := w.String()
	w.Fault = refuse("prepare worker-1")
	result, err := run(t, w, &worldtest.Journal{}, three, resource.Prior{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Failures) != 1 || !errors.Is(result.Failures[0].Err, errRefused) || !result.Failures[0].Undone {
		t.Fatalf("failures: %+v", result.Failures)
	}
	if _, there := result.Prior.Session(resource.Nth("worker", 1)); there {
		t.Error("the failed session is in the state")
	}
	if s, there := result.Prior.Session(resource.Nth("worker", 0)); !there || s.Body == nil {
		t.Error("the session before it is not in the state")
	}
	if n := len(w.GPU("GPU-0").Slices); n != len(result.Prior.Sessions) {
		t.Errorf("%d slices for %d sessions in the state", n, len(result.Prior.Sessions))
	}
	w.Fault = nil
	prior := must(t, w, three, result.Prior)
	if len(prior.Sessions) != 3 {
		t.Errorf("%d sessions after the second apply", len(prior.Sessions))
	}
	must(t, w, "", prior)
	if d := cmp.Diff(start, w.String()); d != "" {
		t.Error(d)
	}
}

// TestLostLockIsSetAgain: the run is stopped after what showed that the lock was
// lifted has disappeared; the next apply sets the lock again.
func TestLostLockIsSetAgain(t *testing.T) {
	w := worldtest.New(t, "h200")
	prior := must(t, w, three, resource.Prior{})
	locked := w.String()
	if _, err := w.Set(context.Background(), "GPU-0", resource.PersistenceMode, resource.Off); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(context.Background())
	w.Fault = func(now string) error {
		if strings.HasPrefix(now, "power") {
			interrupt() // this step is finished, the clock's is not begun
		}
		return nil
	}
	p, _ := w.Plan(t, three, prior)
	result, err := w.Run(&worldtest.Journal{}, 1).Execute(ctx, p, prior, w.Live)
	if err != nil || !result.Interrupted || !w.GPU("GPU-0").Persistence || w.String() == locked {
		t.Fatalf("%+v, %v\n%s", result, err, w)
	}
	w.Fault = nil
	must(t, w, three, result.Prior)
	if d := cmp.Diff(locked, w.String()); d != "" {
		t.Error(d)
	}
}

// TestClockOfFailedUpdate: a clock that was set for an update that failed does
// not stay when the update is taken back.
func TestClockOfFailedUpdate(t *testing.T) {
	one := func(target string) string {
		return "host \"lab\" {}\nsession \"w\" { target = \"" + target + "\" }"
	}
	w := worldtest.New(t, "h200")
	prior := must(t, w, one("2060"), resource.Prior{})
	before := w.GPU("GPU-0").SMClockMHz
	w.Fault = refuse("prepare")
	result, err := run(t, w, &worldtest.Journal{}, one("2070"), prior, 1)
	if err != nil || len(result.Failures) == 0 || w.GPU("GPU-0").SMClockMHz == before {
		t.Fatalf("%+v, %v, clock %d", result.Failures, err, w.GPU("GPU-0").SMClockMHz)
	}
	w.Fault = nil
	must(t, w, one("2060"), result.Prior)
	if now := w.GPU("GPU-0").SMClockMHz; now != before {
		t.Errorf("the clock is %d MHz, was %d", now, before)
	}
}

// TestMoveToWholeGPU: a session whose slice was taken away and that moves to a
// whole GPU gets that GPU, and remembers no slice.
func TestMoveToWholeGPU(t *testing.T) {
	w := worldtest.New(t, "h200", "v100")
	at := func(gpu string) string {
		return "host \"lab\" {}\nsession \"w\" {\n  target = \"2060\"\n  gpu = " + gpu + "\n}"
	}
	prior := must(t, w, at("0"), resource.Prior{})
	w.GPU("GPU-0").Slices = nil
	prior = must(t, w, at("1"), prior)
	s, _ := prior.Session(resource.One("w"))
	if s.Handle != nil || s.Body == nil || s.Body.SliceID != "GPU-1" {
		t.Errorf("handle %+v, container %+v", s.Handle, s.Body)
	}
	if p, _ := w.Plan(t, at("1"), prior); !p.Empty() || p.Diff.Drifted() {
		t.Errorf("still to do:\n%s%+v", p, p.Diff.Drift)
	}
}

func TestKeepPartial(t *testing.T) {
	w := worldtest.New(t, "h200")
	w.Fault = refuse("prepare worker-0")
	p, _ := w.Plan(t, three, resource.Prior{})
	r := w.Run(&worldtest.Journal{}, 1)
	r.KeepPartial = true
	result, err := r.Execute(context.Background(), p, resource.Prior{}, w.Live)
	if err != nil {
		t.Fatal(err)
	}
	if s, there := result.Prior.Session(resource.Nth("worker", 0)); !there || s.Handle == nil || s.Body != nil {
		t.Errorf("the half-made session is not kept: %+v", s)
	}
}

// TestNothingRunsAfterWhatItNeedsFailed, in any order of events.
func TestNothingRunsAfterWhatItNeedsFailed(t *testing.T) {
	for _, parallelism := range []int{1, 2, 8} {
		w := worldtest.New(t, "h200")
		w.Fault = refuse("mig on")
		result, err := run(t, w, &worldtest.Journal{}, three, resource.Prior{}, parallelism)
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Failures) != 1 || len(w.GPU("GPU-0").Slices) != 0 || len(w.Host().Bodies) != 0 {
			t.Errorf("failures %v, world\n%s", result.Failures, w)
		}
		if result.Failures[0].Undone {
			t.Error("the persistence that was set before counts as undone")
		}
		if held, ok := result.Prior.GPU(worldtest.HostName, "GPU-0"); !ok || !held.Applied.Has(resource.PersistenceMode) || held.Applied.Has(resource.MIGMode) {
			t.Errorf("the state has %+v", held)
		}
	}
}

func TestUndoThatFailsIsTold(t *testing.T) {
	w := worldtest.New(t, "h200")
	w.Fault = func(now string) error {
		return errors.Join(refuse("prepare worker-0")(now), refuse("destroy ")(now))
	}
	result, err := run(t, w, &worldtest.Journal{}, three, resource.Prior{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := result.Failures[0]
	if f.Undone || f.Left == nil {
		t.Errorf("%+v", f)
	}
	if s, there := result.Prior.Session(resource.Nth("worker", 0)); !there || s.Handle == nil {
		t.Error("the slice that is left is not in the state")
	}
}

// TestInterruption: the step that runs is finished, nothing new is started, and the next apply goes on from there.
func TestInterruption(t *testing.T) {
	w := worldtest.New(t, "h200")
	ctx, interrupt := context.WithCancel(context.Background())
	w.Fault = func(now string) error {
		if now == "prepare worker-1" {
			interrupt()
		}
		return nil
	}
	p, _ := w.Plan(t, three, resource.Prior{})
	r := w.Run(&worldtest.Journal{}, 1)
	result, err := r.Execute(ctx, p, resource.Prior{}, w.Live)
	if err != nil || !result.Interrupted || len(result.Failures) != 0 || len(result.NotTried) == 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if s, _ := result.Prior.Session(resource.Nth("worker", 1)); s.Body == nil {
		t.Error("the step that ran was not finished")
	}
	prior := must(t, w, three, result.Prior)
	if p, _ := w.Plan(t, three, prior); !p.Empty() {
		t.Errorf("still to do:\n%s", p)
	}
}

// TestInterruptionOfPull: an interruption ends a pull, and no session that needs the image is begun.
func TestInterruptionOfPull(t *testing.T) {
	w := worldtest.New(t, "h200").WithDocker()
	before := w.String()
	ctx, interrupt := context.WithCancel(context.Background())
	w.Fault = func(now string) error {
		if strings.HasPrefix(now, "pull ") {
			interrupt()
		}
		return nil
	}
	p, _ := w.Plan(t, `host "lab" {}
session "w" {
  target = "2060"
  image  = "debian:12"
}`, resource.Prior{})
	result, err := w.Run(&worldtest.Journal{}, 1).Execute(ctx, p, resource.Prior{}, w.Live)
	if err != nil || !result.Interrupted || len(result.Failures) != 1 || !errors.Is(result.Failures[0].Err, context.Canceled) || len(result.NotTried) == 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if len(w.Host().Bodies) != 0 {
		t.Errorf("a session is there:\n%s\nbefore:\n%s", w, before)
	}
}

// TestUsed: the result has the memory use of each session that ended, and of no other.
func TestUsed(t *testing.T) {
	w := worldtest.New(t, "h200")
	w.Used = map[string]resource.Use{"worker-1": {PeakMiB: 5812, OutOfMemory: 2}, "worker-2": {PeakMiB: 7}}
	prior := must(t, w, three, resource.Prior{})
	result, err := run(t, w, &worldtest.Journal{}, strings.Replace(three, "3", "2", 1), prior, 4)
	if want := map[resource.Address]resource.Use{resource.Nth("worker", 2): {PeakMiB: 7}}; err != nil || !cmp.Equal(result.Used, want) {
		t.Errorf("used are %v, %v, want %v", result.Used, err, want)
	}
	result, err = run(t, w, &worldtest.Journal{}, `host "lab" {}`, result.Prior, 4)
	if want := map[resource.Address]resource.Use{resource.Nth("worker", 0): {}, resource.Nth("worker", 1): w.Used["worker-1"]}; err != nil || !cmp.Equal(result.Used, want) {
		t.Errorf("used are %v, %v, want %v", result.Used, err, want)
	}
}
