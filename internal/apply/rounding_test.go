package apply_test

import (
	"testing"

	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// TestRoundedPower: the value that the driver rounds a power limit to is cosplay's: the
// next plan is empty, nothing drifts, and destroy restores the baseline exactly or fails.
func TestRoundedPower(t *testing.T) {
	w := worldtest.New(t, "h200")
	w.PowerStepMW = 7000
	before := w.String()
	prior := must(t, w, three, resource.Prior{})
	g := prior.GPUs[0]
	if g.Applied.Value(resource.PowerLimit)%7000 != 0 || g.AskedPowerMW == nil || *g.AskedPowerMW%7000 == 0 || w.GPU("GPU-0").PowerMW != g.Applied.Value(resource.PowerLimit) {
		t.Fatalf("%+v, %d mW on the GPU", g, w.GPU("GPU-0").PowerMW)
	}
	if p, _ := w.Plan(t, three, prior); p.Diff.Changes() || p.Diff.Drifted() {
		t.Errorf("the next plan:\n%s%+v", p, p.Diff.Drift)
	}
	w.PowerStepMW = 9000
	p, _ := w.Plan(t, "", prior)
	run := w.Run(&worldtest.Journal{}, 1)
	run.GoOn = true
	result, err := run.Execute(t.Context(), p, prior, w.Live)
	if err != nil || len(result.Failures) != 1 || len(result.Prior.GPUs) != 1 {
		t.Fatalf("a baseline that was rounded: %v, %v", err, result.Failures)
	}
	w.PowerStepMW = 7000
	if left := must(t, w, "", result.Prior); len(left.GPUs) != 0 || w.String() != before {
		t.Errorf("%+v is left, and\n%swant\n%s", left, w, before)
	}
}
