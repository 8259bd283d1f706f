package render

import (
	"io"

	"cosplay/internal/apply"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

func madeOf(s resource.PriorSession) public.Made {
	made := public.Made{Address: s.Address.String(), Name: s.Address.Short(), Slice: public.Slice(s.Slice), Runtime: s.Runtime, Image: s.Session.Spec.Image,
		Container: some(s.Container, containerOf), SSH: loginOf(s.Session, s.Container)}
	if s.Handle != nil {
		made.SliceUUID = s.Handle.UUID
	}
	return made
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

// AppliedJSON writes what came of a run as data.
func AppliedJSON(w io.Writer, v AppliedView) error {
	out := public.Applied{Format: public.V1, Destroy: v.Destroy, Summary: public.Achieved(achieved(v)), Done: list(v.Result.Done),
		Sessions: list(each(v.Result.Prior.Sessions, madeOf)), Ended: list(each(v.ended(), endedOf)),
		Failures: list(each(v.Result.Failures, func(f apply.Failure) public.Failure { return failureOf(v, f) })), NotTried: ids(v.Result.NotTried), Unrestored: unrestored(v),
		Interrupted: v.Result.Interrupted, TookSeconds: v.Took.Seconds(), Serial: v.Result.Prior.Serial, NotCompleted: addresses(v.Plan.Diff.Stuck),
		Outputs: outputsJSON(v.Outputs), Diagnostics: diagnosticsJSON(v.Checks, v.Files)}
	if v.Err != nil {
		out.Error = v.Err.Error()
	}
	if v.Verify != nil {
		out.Verify = new(v.Verify.json())
	}
	return JSON(w, out)
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
