package render

import (
	"io"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/public"
	"cosplay/internal/words"
)

// ResetJSON writes what came of a reset as data.
func ResetJSON(w io.Writer, v ResetDoneView) error {
	out := public.Reset{Format: public.V1, State: v.State, Fault: v.Fault, Projects: []public.ResetProject{}, Failures: list(each(v.Failures, error.Error)), Aside: list(v.Aside), Left: v.Left}
	for _, r := range v.Results {
		out.Projects = append(out.Projects, resetProjectOf(r))
		for _, f := range r.Result.Failures {
			out.Failures = append(out.Failures, words.Failure(f.Step, f.Err, r.Round.Live))
		}
		if r.Err != nil {
			out.Failures = append(out.Failures, r.Err.Error())
		}
	}
	if v.Err != nil {
		out.Failures = append(out.Failures, v.Err.Error())
	}
	return JSON(w, out)
}

func resetProjectOf(r ResetResult) public.ResetProject {
	changes, live := r.Round.Plan.Diff, r.Round.Live
	return public.ResetProject{Lineage: r.Round.Holder.Lineage, User: r.Round.Holder.User, State: r.Round.Holder.State, Own: r.Round.Own,
		Sessions: list(each(changes.Sessions, func(c diff.SessionChange) string { return c.Address.String() })), GPUs: gpuChangesJSON(live, changes.GPUs), Unproven: list(each(r.Round.Unproven, containerOf)),
		Notes: words.Notes(r.Round.Notes, live), Done: list(r.Result.Done), NotTried: ids(r.Result.NotTried)}
}

func ids(steps []plan.Step) []string {
	return list(each(steps, func(s plan.Step) string { return s.ID }))
}
