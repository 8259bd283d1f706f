package plan_test

import (
	"testing"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// TestBaselineIsNeverOverwritten, whatever a plan says.
func TestBaselineIsNeverOverwritten(t *testing.T) {
	first, second := 500_000, 700_000
	take := func(mw *int) plan.TakeGPU {
		return plan.TakeGPU{Host: "lab", GPU: "GPU-0", Baseline: resource.Settings{PowerMW: mw}}
	}
	p := plan.Fold(resource.Prior{}, take(&first), plan.Made{})
	p = plan.Fold(p, take(&second), plan.Made{})
	session := resource.PriorSession{Session: resource.Session{Address: resource.One("x")}, Handle: &resource.Handle{UUID: "MIG-1"}}
	p = plan.Fold(p, plan.Adopt{Session: session, GPU: &resource.PriorGPU{Host: "lab", UUID: "GPU-0", Baseline: resource.Settings{PowerMW: &second}}}, plan.Made{})
	if s, there := p.Session(resource.One("x")); !there || s.Handle.UUID != "MIG-1" {
		t.Errorf("what was adopted is not there: %+v", p.Sessions)
	}
	if len(p.GPUs) != 1 || *p.GPUs[0].Baseline.PowerMW != first {
		t.Errorf("the state has %+v", p.GPUs)
	}
}

// TestFoldLeavesItsInputAlone: apply and recovery fold many views of one state.
func TestFoldLeavesItsInputAlone(t *testing.T) {
	before := plan.Fold(resource.Prior{}, plan.TakeGPU{Host: "lab", GPU: "GPU-0"}, plan.Made{})
	plan.Fold(before, plan.SetMIG{Host: "lab", GPU: "GPU-0", On: true}, plan.Made{})
	plan.Fold(before, plan.NoteBoot{Host: "lab", BootID: "b"}, plan.Made{})
	plan.Fold(before, plan.ReleaseGPU{Host: "lab", GPU: "GPU-0"}, plan.Made{})
	if len(before.GPUs) != 1 || before.GPUs[0].Applied.MIG != nil || len(before.BootIDs) != 0 {
		t.Errorf("the input became %+v", before)
	}
}
