package render

import (
	"io"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/words"
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
	Hosts         []planHostJSON   `json:"hosts"`
	Drift         []driftJSON      `json:"drift"`
	Images        []imageChange    `json:"images"` // that are pulled or built
	Diff          changesJSON      `json:"changes"`
	Steps         []plan.Step      `json:"steps"`
	Fits          []fitOfJSON      `json:"fits"`
	Warnings      []diagnosticJSON `json:"warnings"`
	Notes         []string         `json:"notes"`

	Stuck    []resource.Address   `json:"not_completed"`        // unfinished sessions that the plan leaves as they are
	Unproven []diff.UnprovenLock  `json:"unproven_clock_locks"` // information, and no drift
	Unowned  []diff.UnprovenSlice `json:"unproven_slices"`      // likewise
}

// planHostJSON is where the sessions of a plan run.
type planHostJSON struct {
	Name      string      `json:"name"`
	Simulated string      `json:"simulated,omitempty"`
	Driver    string      `json:"driver"`
	Runtime   string      `json:"runtime"`
	Engine    *engineJSON `json:"engine"`
}

type changesJSON struct {
	GPUs     []gpuChangeJSON     `json:"gpus"`
	Sessions []sessionChangeJSON `json:"sessions"`
	Outputs  []diff.OutputChange `json:"outputs"`
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
		Changes: d.Changes(), Drifted: d.Drifted(), Summary: tallyOf(v.Plan),
		Hosts: planHostsOf(v.Live), Drift: driftsJSON(v.Live, d.Drift), Stuck: list(d.Stuck), Unproven: list(d.Unproven), Unowned: list(d.Unowned), Images: imagesOf(v), Diff: changesJSON{GPUs: gpuChangesJSON(v.Live, d.GPUs), Sessions: sessionChangesJSON(v.Live, d.Sessions), Outputs: outputsOf(d)},
		Steps: list(v.Plan.Steps), Fits: fitsOf(v.Plan.Desired.Sessions),
		Warnings: diagnosticsJSON(v.Warnings, v.Files), Notes: words.Notes(v.Notes, v.Live),
	})
}

func planHostsOf(live resource.Live) []planHostJSON {
	all := []planHostJSON{}
	for _, h := range live.Hosts {
		all = append(all, planHostJSON{Name: h.Name, Simulated: h.Simulated, Driver: h.Driver, Runtime: h.Runtime, Engine: engineOf(h)})
	}
	return all
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
		FormatVersion int                `json:"format_version"`
		Drifted       bool               `json:"has_drift"`
		Drift         []driftJSON        `json:"drift"`
		Unfinished    []resource.Address `json:"unfinished"` // sessions that an interrupted or failed run left missing or incomplete
		Notes         []string           `json:"notes"`

		Unproven []diff.UnprovenLock  `json:"unproven_clock_locks"` // information, and no drift
		Unowned  []diff.UnprovenSlice `json:"unproven_slices"`      // likewise
	}{formatVersion, v.Plan.Diff.Drifted(), driftsJSON(v.Live, v.Plan.Diff.Drift), list(v.Plan.Diff.Unfinished), words.Notes(v.Notes, v.Live), list(v.Plan.Diff.Unproven), list(v.Plan.Diff.Unowned)})
}

// outputsOf are the changes of outputs without what only the state has a use for.
func outputsOf(d diff.Diff) []diff.OutputChange {
	all := list(slices.Clone(d.Outputs))
	for i := range all {
		all[i].Sealed = ""
	}
	return all
}
