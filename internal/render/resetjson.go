package render

import (
	"io"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

type resetJSON struct {
	FormatVersion int              `json:"format_version"`
	State         string           `json:"state"`
	Fault         string           `json:"fault"` // what is wrong with the state; "" for nothing
	Projects      []resetRoundJSON `json:"projects"`
	Failures      []string         `json:"failures"`
	Aside         []string         `json:"moved_aside"`
	Left          bool             `json:"left"`
}

type resetRoundJSON struct {
	Lineage  string               `json:"lineage"`
	User     string               `json:"user"`
	State    string               `json:"state"`
	Own      bool                 `json:"own"`
	Sessions []resource.Address   `json:"sessions"`
	GPUs     []gpuChangeJSON      `json:"gpus"`
	Unproven []resource.Container `json:"unproven"`
	Notes    []string             `json:"notes"`
	Done     []string             `json:"done"` // ids of steps
	NotTried []string             `json:"not_tried"`
}

// ResetJSON writes what came of a reset as data.
func ResetJSON(w io.Writer, v ResetDoneView) error {
	out := resetJSON{FormatVersion: formatVersion, State: v.State, Fault: v.Fault, Projects: []resetRoundJSON{}, Failures: []string{}, Aside: list(v.Aside), Left: v.Left}
	for _, err := range v.Failures {
		out.Failures = append(out.Failures, err.Error())
	}
	for _, r := range v.Results {
		one := resetRoundJSON{Lineage: r.Round.Holder.Lineage, User: r.Round.Holder.User, State: r.Round.Holder.State, Own: r.Round.Own,
			Sessions: []resource.Address{}, GPUs: gpuChangesJSON(r.Round.Live, r.Round.Plan.Diff.GPUs), Unproven: list(r.Round.Unproven), Notes: words.Notes(r.Round.Notes, r.Round.Live),
			Done: list(r.Result.Done), NotTried: ids(r.Result.NotTried)}
		for _, s := range r.Round.Plan.Diff.Sessions {
			one.Sessions = append(one.Sessions, s.Address)
		}
		out.Projects = append(out.Projects, one)
		for _, f := range r.Result.Failures {
			out.Failures = append(out.Failures, f.Error())
		}
		if r.Err != nil {
			out.Failures = append(out.Failures, r.Err.Error())
		}
	}
	if v.Err != nil {
		out.Failures = append(out.Failures, v.Err.Error())
	}
	return writeJSON(w, out)
}

func ids(steps []plan.Step) []string {
	all := []string{}
	for _, s := range steps {
		all = append(all, s.ID)
	}
	return all
}
