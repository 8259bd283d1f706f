package render

import (
	"io"

	"cosplay/internal/plan"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// PlanJSON writes a plan as data, byte for byte the same for the same inputs.
func PlanJSON(w io.Writer, v PlanView) error {
	d := v.Plan.Diff
	return JSON(w, public.Plan{
		Format: public.V1, Config: v.Config, Destroy: v.Destroy, Saved: v.Saved, Stale: v.Stale,
		HasChanges: d.Changes(), HasDrift: d.Drifted(), Summary: public.Tally(tallyOf(v.Plan)), Hosts: planHostsOf(v.Live), Drift: driftsJSON(v.Live, d.Drift), Images: imagesOf(v),
		Changes: public.Changes{GPUs: gpuChangesJSON(v.Live, d.GPUs), Sessions: sessionChangesJSON(v.Live, d.Sessions), Outputs: outputChangesJSON(d.Outputs)},
		Steps:   list(each(v.Plan.Steps, func(s plan.Step) public.Step { return stepOf(s, v.Live) })), Fits: fitsOf(v.Plan.Desired.Sessions), Warnings: diagnosticsJSON(v.Warnings, v.Files), Notes: words.Notes(v.Notes, v.Live),
		NotCompleted: addresses(d.Stuck), UnprovenLocks: unprovenLocksJSON(d.Unproven), UnprovenSlices: unprovenSlicesJSON(d.Unowned),
	})
}

func planHostsOf(live resource.Live) []public.PlanHost {
	return list(each(live.Hosts, func(h resource.Host) public.PlanHost {
		return public.PlanHost{Name: h.Name, Simulated: h.Simulated, Driver: h.Driver, Runtime: h.Runtime, Engine: engineOf(h)}
	}))
}

func stepOf(s plan.Step, live resource.Live) public.Step {
	step := public.Step{ID: s.ID, Group: s.Group, Title: words.Step(s, live), Needs: s.Needs, After: s.After, Do: operationOf(s.Do)}
	if s.Undo.Op != nil {
		step.Undo = new(operationOf(s.Undo))
	}
	return step
}

// operationOf names the setting that an operation changes.
func operationOf(o plan.OpJSON) public.Operation {
	if set, is := o.Op.(plan.SetGPU); is {
		return public.Operation{Kind: "set-" + set.Setting.String()}
	}
	return public.Operation{Kind: o.Kind()}
}

func fitsOf(sessions []resource.Session) []public.SessionFigures {
	return list(each(sessions, func(s resource.Session) public.SessionFigures {
		return public.SessionFigures{Session: s.Address.String(), Target: s.Target.Key, Slice: public.Slice(s.Slice), Figures: figuresOf(s.Fit)}
	}))
}

// DriftJSON writes drift as data, also what is informational.
func DriftJSON(w io.Writer, v PlanView) error {
	d := v.Plan.Diff
	return JSON(w, public.DriftReport{Format: public.V1, HasDrift: d.Drifted(), Drift: driftsJSON(v.Live, d.Drift), Unfinished: addresses(d.Unfinished),
		Notes: words.Notes(v.Notes, v.Live), UnprovenLocks: unprovenLocksJSON(d.Unproven), UnprovenSlices: unprovenSlicesJSON(d.Unowned)})
}
