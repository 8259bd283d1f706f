package apply_test

import (
	"context"
	"errors"
	"testing"

	"cosplay/internal/apply"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// TestMovesSurviveAnInterruption: wherever a run is interrupted that moves sessions and changes
// them, what follows has each of them once, with the slice that it had.
func TestMovesSurviveAnInterruption(t *testing.T) {
	const (
		before = "host \"lab\" {}\nsession \"a\" {\n  count  = 2\n  target = \"2060\"\n}\n"
		after  = "host \"lab\" {}\nsession \"b\" {\n  count  = 2\n  target = \"2060\"\n  env    = { SEED = count.index }\n}\nmoved {\n  from = session.a\n  to   = session.b\n}\n"
	)
	for cut := 1; ; cut++ {
		w := worldtest.New(t, "h200")
		prior := carryOut(t, w, before, resource.Prior{})
		slices := w.GPU("GPU-0").Slices
		p, diags := w.Plan(t, after, prior)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		journal := &worldtest.Journal{}
		journal.Fault = func() error {
			if len(journal.Entries) == cut {
				return errors.New("interrupted")
			}
			return nil
		}
		_, err := w.Run(journal, 1).Execute(context.Background(), p, prior, w.Live)
		prior, _ = apply.Recover(prior, journal.Entries, w.Live)
		prior = carryOut(t, w, after, prior)
		if len(prior.Sessions) != 2 || prior.Sessions[0].Address != resource.Nth("b", 0) || prior.Sessions[0].ID != "a-0" || prior.Sessions[1].Env["SEED"] != "1" {
			t.Fatalf("cut after %d entries: %+v", cut, prior.Sessions)
		}
		for i, s := range w.GPU("GPU-0").Slices {
			if len(w.GPU("GPU-0").Slices) != 2 || s.UUID != slices[i].UUID {
				t.Fatalf("cut after %d entries: the slices are others", cut)
			}
		}
		if err == nil {
			if cut < 4 {
				t.Errorf("the run had only %d entries", cut)
			}
			return
		}
	}
}

// carryOut plans and applies a configuration.
func carryOut(t *testing.T, w *worldtest.World, text string, prior resource.Prior) resource.Prior {
	t.Helper()
	p, diags := w.Plan(t, text, prior)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	result, err := w.Run(&worldtest.Journal{}, 1).Execute(context.Background(), p, prior, w.Live)
	if err != nil || len(result.Failures) > 0 {
		t.Fatal(err, result.Failures)
	}
	return result.Prior
}
