package apply_test

import (
	"context"
	"errors"
	"testing"

	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// TestGoOn: after a failure everything is done that does not need it, and the
// state tells what is left.
func TestGoOn(t *testing.T) {
	for _, goOn := range []bool{false, true} {
		w := worldtest.New(t, "h200")
		prior := must(t, w, three, resource.Prior{})
		w.Fault = refuse("unprepare worker-0")
		p, _ := w.Plan(t, "", prior)
		run := w.Run(&worldtest.Journal{}, 1)
		run.GoOn = goOn
		result, err := run.Execute(context.Background(), p, prior, w.Live)
		if err != nil || len(result.Failures) != 1 || !errors.Is(result.Failures[0].Err, errRefused) {
			t.Fatal(err, result.Failures)
		}
		want := map[bool]int{false: 3, true: 1}[goOn]
		if n := len(w.GPU("GPU-0").Slices); n != want || len(result.Prior.Sessions) != want {
			t.Errorf("going on %v: %d slices and %d sessions are left, want %d", goOn, n, len(result.Prior.Sessions), want)
		}
		// What needs the failed step was not tried.
		if !w.GPU("GPU-0").MIG || len(result.Prior.GPUs) != 1 {
			t.Error("the GPU was given back from under a session")
		}
	}
}
