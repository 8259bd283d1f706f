package diff_test

import (
	"slices"
	"testing"

	"cosplay/internal/apply"
	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// TestNamesAfterADriverChange: a slice that only has another name is still the session's, and the session gets the
// new name; that nothing proves it is information, for as long as the driver names slices by their ids.
func TestNamesAfterADriverChange(t *testing.T) {
	w, prior := applied(t)
	g := w.GPU("GPU-0")
	unique := []string{g.Slices[0].UUID, g.Slices[1].UUID}
	named := func(byIDs bool) {
		for i := range g.Slices {
			l := &g.Slices[i]
			if l.UUID = unique[i]; byIDs {
				l.UUID = resource.IDName(g.UUID, l.GPUInstance, l.ComputeInstance)
			}
		}
	}
	for _, byIDs := range []bool{true, false, true} {
		named(byIDs)
		now := apply.Reconsider(prior, w.Live)
		d := diff.Compare(resource.Desired{}, now, w.Live, diff.Options{})
		if len(d.Drift) > 0 {
			t.Errorf("by ids %t: drift %v", byIDs, lines(d.Drift))
		}
		if got := len(d.Unowned); got != map[bool]int{true: 2, false: 0}[byIDs] {
			t.Errorf("by ids %t: %d slices are reported as not provable", byIDs, got)
		}
		p, diags := w.Plan(t, two, now)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, c := range p.Diff.Sessions {
			if c.Slice != diff.Keep || c.Body != diff.Refit || !slices.ContainsFunc(c.Fields, func(f diff.Field) bool { return f.Kind == diff.FieldSliceUUID }) {
				t.Errorf("by ids %t: %s: slice %s, container %s, %+v", byIDs, c.Address, c.Slice, c.Body, c.Fields)
			}
		}
		prior = bring(t, w, two, now)
		if again, _ := w.Plan(t, two, apply.Reconsider(prior, w.Live)); !again.Empty() {
			t.Errorf("by ids %t: applied, there is more to do:\n%s", byIDs, again)
		}
	}
	// A state that was written before boots were kept says so.
	for i := range prior.Sessions {
		h := *prior.Sessions[i].Handle
		h.Boot = ""
		prior.Sessions[i].Handle = &h
	}
	d := diff.Compare(resource.Desired{}, prior, w.Live, diff.Options{})
	if len(d.Unowned) != 2 || d.Unowned[0].SameBoot {
		t.Errorf("without a boot on record: %+v", d.Unowned)
	}
}
