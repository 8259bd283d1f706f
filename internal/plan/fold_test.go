package plan_test

import (
	"encoding/json"
	"testing"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// TestBaselineIsNeverOverwritten, whatever a plan says.
func TestBaselineIsNeverOverwritten(t *testing.T) {
	const first, second = 500_000, 700_000
	take := func(mw int) plan.TakeGPU {
		return plan.TakeGPU{Host: "lab", GPU: "GPU-0", Baseline: resource.Settings{}.With(resource.PowerLimit, mw)}
	}
	p := plan.Fold(resource.Prior{}, take(first), plan.Made{})
	p = plan.Fold(p, take(second), plan.Made{})
	session := resource.PriorSession{Session: resource.Session{Address: resource.One("x")}, Handle: &resource.Handle{UUID: "MIG-1"}}
	p = plan.Fold(p, plan.Adopt{Session: session, GPU: &resource.PriorGPU{Host: "lab", UUID: "GPU-0", Baseline: resource.Settings{}.With(resource.PowerLimit, second)}}, plan.Made{})
	if s, there := p.Session(resource.One("x")); !there || s.Handle.UUID != "MIG-1" {
		t.Errorf("what was adopted is not there: %+v", p.Sessions)
	}
	if len(p.GPUs) != 1 || p.GPUs[0].Baseline.Value(resource.PowerLimit) != first {
		t.Errorf("the state has %+v", p.GPUs)
	}
}

// TestFoldLeavesItsInputAlone: apply and recovery fold many views of one state.
func TestFoldLeavesItsInputAlone(t *testing.T) {
	before := plan.Fold(resource.Prior{}, plan.TakeGPU{Host: "lab", GPU: "GPU-0"}, plan.Made{})
	plan.Fold(before, plan.SetGPU{Host: "lab", GPU: "GPU-0", Setting: resource.MIGMode, Value: resource.On}, plan.Made{})
	plan.Fold(before, plan.NoteBoot{Host: "lab", BootID: "b"}, plan.Made{})
	plan.Fold(before, plan.ReleaseGPU{Host: "lab", GPU: "GPU-0"}, plan.Made{})
	if len(before.GPUs) != 1 || before.GPUs[0].Applied.Has(resource.MIGMode) || len(before.BootIDs) != 0 {
		t.Errorf("the input became %+v", before)
	}
}

// TestOldSettings: the journal of a version that had an operation for each setting is read as it was meant.
func TestOldSettings(t *testing.T) {
	for text, want := range map[string]plan.SetGPU{
		`{"kind":"set-mig","do":{"host":"lab","gpu":"GPU-0","on":true}}`:                   {Setting: resource.MIGMode, Value: resource.On},
		`{"kind":"set-persistence","do":{"host":"lab","gpu":"GPU-0","on":false}}`:          {Setting: resource.PersistenceMode, Value: resource.Off},
		`{"kind":"set-power","do":{"host":"lab","gpu":"GPU-0","mw":320000,"exact":true}}`:  {Setting: resource.PowerLimit, Value: 320_000, Restore: true},
		`{"kind":"set-clock","do":{"host":"lab","gpu":"GPU-0","mhz":1575}}`:                {Setting: resource.SMClock, Value: 1575},
		`{"kind":"set-gpu","do":{"host":"lab","gpu":"GPU-0","setting":"clock","value":0}}`: {Setting: resource.SMClock},
	} {
		var op plan.OpJSON
		want.Host, want.GPU = "lab", "GPU-0"
		if err := json.Unmarshal([]byte(text), &op); err != nil || op.Op != want {
			t.Errorf("%s: %+v, %v", text, op.Op, err)
		}
	}
}
