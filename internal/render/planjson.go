package render

import (
	"io"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

type planJSON struct {
	FormatVersion int              `json:"format_version"`
	Config        string           `json:"config"`
	Destroy       bool             `json:"destroy"`
	Saved         string           `json:"saved,omitempty"`
	Stale         string           `json:"stale,omitempty"` // what has moved since it was saved
	Changes       bool             `json:"has_changes"`
	Drifted       bool             `json:"has_drift"`
	Summary       tally            `json:"summary"`
	Drift         []diff.Drift     `json:"drift"`
	Diff          changesJSON      `json:"changes"`
	Steps         []plan.Step      `json:"steps"`
	Fits          []fitOfJSON      `json:"fits"`
	Warnings      []diagnosticJSON `json:"warnings"`
	Notes         []string         `json:"notes"`
}

type changesJSON struct {
	GPUs     []diff.GPUChange     `json:"gpus"`
	Sessions []diff.SessionChange `json:"sessions"`
}

// fitOfJSON is the fit of one session. Ratios are got over wanted, errors are
// |ln ratio|.
type fitOfJSON struct {
	Session resource.Address `json:"session"`
	Target  string           `json:"target"`
	Slice   resource.Slice   `json:"slice"`
	fitJSON
}

// PlanJSON writes a plan as data, byte for byte the same for the same inputs.
func PlanJSON(w io.Writer, v PlanView) error {
	d := v.Plan.Diff
	return writeJSON(w, planJSON{
		FormatVersion: formatVersion, Config: v.Config, Destroy: v.Destroy, Saved: v.Saved, Stale: v.Stale,
		Changes: d.Changes(), Drifted: d.Drifted(), Summary: tallyOf(d),
		Drift: list(d.Drift), Diff: changesJSON{GPUs: list(d.GPUs), Sessions: list(d.Sessions)},
		Steps: list(v.Plan.Steps), Fits: fitsOf(v.Plan.Desired.Sessions),
		Warnings: diagnosticsJSON(v.Warnings), Notes: list(v.Notes),
	})
}

func fitsOf(sessions []resource.Session) []fitOfJSON {
	all := []fitOfJSON{}
	for _, s := range sessions {
		all = append(all, fitOfJSON{Session: s.Address, Target: s.Target.Key, Slice: s.Slice, fitJSON: newFitJSON(s.Fit)})
	}
	return all
}

// DriftJSON writes drift as data: also that which is only told.
func DriftJSON(w io.Writer, v PlanView) error {
	return writeJSON(w, struct {
		FormatVersion int          `json:"format_version"`
		Drifted       bool         `json:"has_drift"`
		Drift         []diff.Drift `json:"drift"`
	}{formatVersion, v.Plan.Diff.Drifted(), list(v.Plan.Diff.Drift)})
}
