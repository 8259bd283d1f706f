package render

import (
	"io"
	"slices"

	"cosplay/internal/apply"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// data is byte for byte the same for the same inputs.
func (v PlanView) data() any {
	d, sharers := v.Plan.Diff, resource.Sharers(v.Plan.Desired.Sessions)
	fit := func(s resource.Session) public.SessionFigures { return sessionFigures(s, sharers[s.Address]) }
	return public.Plan{
		Format: public.V1, Differences: differencesOf(v), Config: v.Config, Destroy: v.Destroy, Saved: v.Saved, Stale: v.Stale,
		HasChanges: d.Changes(), Summary: public.Tally(tallyOf(v.Plan)), Hosts: each(v.Live.Hosts, planHostOf), Images: imagesOf(v),
		Changes: public.Changes{GPUs: gpuChangesJSON(v.Live, d.GPUs), Sessions: sessionChangesJSON(v.Live, d.Sessions), Outputs: outputChangesJSON(d.Outputs)},
		Steps:   each(v.Plan.Steps, func(s plan.Step) public.Step { return stepOf(s, v.Live) }), Fits: each(v.Plan.Desired.Sessions, fit),
		Warnings: diagnosticsJSON(v.Warnings, v.Files), NotCompleted: addresses(d.Stuck), Expired: each(d.Down, expiredOf), Clusters: v.Clusters.json(),
	}
}

func sessionFigures(s resource.Session, sharers int) public.SessionFigures {
	return public.SessionFigures{Session: s.Address.String(), Target: s.Target.Key, Slice: sliceJSON(s.Slice), More: each(s.More, sliceJSON), Sharers: sharers, Figures: figuresOf(s.Fit)}
}

func differencesOf(v PlanView) public.Differences {
	d := v.Plan.Diff
	return public.Differences{HasDrift: d.Drifted(), Drift: Drifts(v.Live, d.Drift), Notes: words.Notes(v.Notes, v.Live),
		UnprovenLocks: each(d.Unproven, func(l diff.UnprovenLock) public.UnprovenLock { return public.UnprovenLock(l) }),
		UnprovenSlices: each(d.Unowned, func(s diff.UnprovenSlice) public.UnprovenSlice {
			return public.UnprovenSlice{Session: s.Session.String(), Slice: sliceJSON(s.Slice), UUID: s.UUID, SameBoot: s.SameBoot}
		})}
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

// DriftJSON writes drift as data, also what is informational.
func DriftJSON(w io.Writer, v PlanView) error {
	return JSON(w, public.DriftReport{Format: public.V1, Differences: differencesOf(v), Unfinished: addresses(v.Plan.Diff.Unfinished)})
}

func fieldsJSON(live resource.Live, all []diff.Field) []public.Field {
	return each(all, func(f diff.Field) public.Field {
		return public.Field{Kind: string(f.Kind), Name: words.Field(f), From: words.Value(f.From, live), To: words.Value(f.To, live), Before: valueOf(f.From), After: valueOf(f.To),
			Reason: words.Setting(f), ReasonKind: string(f.Reason.Kind), Left: f.Left}
	})
}

// keptJSON are settings that stay as they are.
func keptJSON(live resource.Live, all []diff.Field) []public.Field {
	out := fieldsJSON(live, all)
	for i := range out {
		out[i].To, out[i].After = out[i].From, out[i].Before
	}
	return out
}

func gpuChangesJSON(live resource.Live, all []diff.GPUChange) []public.GPUChange {
	return each(all, func(c diff.GPUChange) public.GPUChange {
		return public.GPUChange{Host: c.Host, UUID: c.UUID, Action: string(c.Action), Baseline: some(c.Baseline, settingsOf), Holds: settingsOf(c.Holds),
			LockBefore: c.LockBefore, LockLost: c.LockLost, Take: c.Take, Whole: c.Whole, Others: each(c.Others, holderOf), GiveBack: c.GiveBack, Abandon: c.Abandon,
			Settings: settingsOf(c.Settings), Fields: fieldsJSON(live, c.Fields), Kept: keptJSON(live, c.Kept)}
	})
}

func sessionChangesJSON(live resource.Live, all []diff.SessionChange) []public.SessionChange {
	return each(all, func(c diff.SessionChange) public.SessionChange {
		return public.SessionChange{Address: c.Address.String(), MovedFrom: address(c.MovedFrom), Imported: c.Imported, Action: string(c.Action),
			Slice: string(c.Slice), Container: string(c.Body), Record: c.Record, Renew: c.Renew, Before: some(c.Before, stateSessionOf), After: some(c.After, sessionOf),
			Reason: words.Session(c), ReasonKind: string(c.Reason.Kind), Fields: fieldsJSON(live, c.Fields)}
	})
}

func outputChangesJSON(all []diff.OutputChange) []public.OutputChange {
	return each(all, func(c diff.OutputChange) public.OutputChange {
		return public.OutputChange{Name: c.Name, Action: string(c.Action), Sensitive: c.Sensitive, Before: c.Before, After: c.After}
	})
}

// Drifts are drifts as data.
func Drifts(live resource.Live, all []diff.Drift) []public.Drift {
	return each(all, func(d diff.Drift) public.Drift {
		return public.Drift{Class: string(d.Class), Host: d.Host, GPU: d.GPU, Session: address(d.Session), Kind: string(d.Kind), Name: d.Name, Runtime: d.Runtime, Informs: d.Informational,
			Thing: words.Drifted(d), From: driftFrom(d, live), To: words.Value(d.To, live), Before: valueOf(d.From), After: valueOf(d.To), Cause: words.Cause(d),
			Apply: words.Repair(d), ByReboot: d.ByReboot, Since: d.Since}
	})
}

func madeOf(s resource.PriorSession) public.Made {
	return public.Made{Address: s.Address.String(), Name: s.Address.Short(), Slice: sliceJSON(s.Slice), More: each(s.More, sliceJSON), SliceUUID: sliceUUID(s), Runtime: s.Runtime,
		Device: s.Device(), Image: s.Spec.Image, Container: some(s.Body, containerOf), SSH: loginOf(s.Session, s.Body)}
}

// sliceUUID is "" for a session without a slice.
func sliceUUID(s resource.PriorSession) string {
	if s.Handle == nil {
		return ""
	}
	return s.Handle.UUID
}

func failureOf(v AppliedView, f apply.Failure) public.Failure {
	one := public.Failure{Step: f.Step.ID, Title: words.Step(f.Step, v.Live), Error: f.Err.Error(), Undone: f.Undone}
	if v.NVMLCode != nil {
		one.Code = v.NVMLCode(f.Err)
	}
	if f.Left != nil {
		one.Left = words.Failure(f.Left.Step, f.Left.Err, v.Live)
	}
	return one
}

func (v AppliedView) data() any {
	out := public.Applied{Format: public.V1, Error: errorText(v.Err), Destroy: v.Destroy, Summary: public.Achieved(achieved(v)), Done: list(v.Result.Done),
		Sessions: each(v.Result.Prior.Sessions, madeOf), Ended: each(v.ended(), func(j judged) public.Ended {
			return public.Ended{Address: j.address.String(), Name: j.address.Short(), Usage: j.json()}
		}),
		Failures: each(v.Result.Failures, func(f apply.Failure) public.Failure { return failureOf(v, f) }), NotTried: ids(v.Result.NotTried), Unrestored: unrestored(v),
		Interrupted: v.Result.Interrupted, TookSeconds: v.Took.Seconds(), Serial: v.Result.Prior.Serial, NotCompleted: addresses(v.Plan.Diff.Stuck),
		Outputs: outputsJSON(v.Outputs), Diagnostics: diagnosticsJSON(v.Checks, v.Files)}
	if v.Verify != nil {
		out.Verify = new(v.Verify.json())
	}
	return out
}

func unrestored(v AppliedView) []public.Unrestored {
	all := []public.Unrestored{}
	for _, c := range v.Plan.Diff.Unrestored() {
		for _, f := range c.Kept {
			if f.Left {
				all = append(all, public.Unrestored{Host: c.Host, GPU: c.UUID, Name: words.Field(f), Value: words.Value(f.From, v.Live), Reason: words.Setting(f)})
			}
		}
	}
	return all
}

func (v ResetDoneView) data() any {
	return public.Reset{Format: public.V1, State: v.State, Fault: v.Fault, Projects: each(v.Results, resetProjectOf),
		Failures: each(slices.Concat(v.Failures, v.failed()), error.Error), Aside: list(v.Aside), Left: v.Left}
}

func resetProjectOf(r ResetResult) public.ResetProject {
	changes, live := r.Round.Plan.Diff, r.Round.Live
	return public.ResetProject{Lineage: r.Round.Holder.Lineage, User: r.Round.Holder.User, State: r.Round.Holder.State, Own: r.Round.Own,
		Sessions: addresses(addressesOf(changes.Sessions)), GPUs: gpuChangesJSON(live, changes.GPUs), Unproven: each(r.Round.Unproven, containerOf),
		Notes: words.Notes(r.Round.Notes, live), Done: list(r.Result.Done), NotTried: ids(r.Result.NotTried)}
}

func ids(steps []plan.Step) []string {
	return each(steps, func(s plan.Step) string { return s.ID })
}
