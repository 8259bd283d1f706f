package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// TestGoOn: after a failure every step runs that does not need the failed one, and the state records the rest.
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

// TestRestoreTheRest: a setting that cannot be restored keeps none of the others from it, nor does a slice that
// cannot be destroyed; the GPU stays in the state until both succeed.
func TestRestoreTheRest(t *testing.T) {
	for what, want := range map[string]string{
		"power":           "mig=false persistence=false power=700000 clock=345", // without persistence the driver forgets the limit
		"clock":           "mig=false persistence=false power=700000 clock=345",
		"mig off":         "mig=true persistence=false power=700000 clock=345",
		"persistence off": "mig=false persistence=true power=700000 clock=345",
		"destroy ":        "mig=true persistence=false power=700000 clock=345",
	} {
		t.Run(what, func(t *testing.T) {
			w := worldtest.New(t, "h200")
			before := w.String()
			prior := must(t, w, three, resource.Prior{})
			w.Fault = func(change string) error {
				if strings.HasPrefix(change, what) {
					return errRefused
				}
				return nil
			}
			p, _ := w.Plan(t, "", prior)
			run := w.Run(&worldtest.Journal{}, 1)
			run.GoOn = true
			result, err := run.Execute(t.Context(), p, prior, w.Live)
			if err != nil || len(result.Failures) == 0 || len(result.Prior.GPUs) != 1 {
				t.Fatal(err, result.Failures, result.Prior.GPUs)
			}
			if got, _, _ := strings.Cut(w.String(), "\n"); got != "GPU-0 "+want {
				t.Errorf("the GPU is %s, want %s", got, want)
			}
			w.Fault = nil
			if left := must(t, w, "", result.Prior); len(left.GPUs)+len(left.Sessions) != 0 || w.String() != before {
				t.Errorf("the next destroy leaves %+v and\n%swant\n%s", left, w, before)
			}
		})
	}
}
