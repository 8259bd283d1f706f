package render

import (
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// Changes are grouped only if everything that a screen shows of them is equal, but for the slot and the ssh port.
func TestChangesAlike(t *testing.T) {
	change := func(index int, kind diff.Kind, name string, from, to diff.Value) diff.SessionChange {
		s := resource.Session{Address: resource.Nth("w", index), Slice: resource.Slice{Profile: "1g.18gb", Start: index}}
		return diff.SessionChange{Address: s.Address, Action: diff.Update, After: &s, Fields: []diff.Field{{Kind: kind, Name: name, From: from, To: to}}}
	}
	for name, c := range map[string]struct {
		odd   diff.SessionChange
		hides int // how many of five changes a screen does not show
	}{
		"equal values":     {change(4, diff.FieldEnv, "MODE", diff.Text("x"), diff.Text("y")), 3},
		"another new one":  {change(4, diff.FieldEnv, "MODE", diff.Text("x"), diff.Text("wipe-the-disk")), 2},
		"another old one":  {change(4, diff.FieldEnv, "MODE", diff.Text("z"), diff.Text("y")), 2},
		"another variable": {change(4, diff.FieldEnv, "SEED", diff.Text("x"), diff.Text("y")), 2},
		"another kind":     {change(4, diff.FieldWorkspace, "", diff.Text("x"), diff.Text("y")), 2},
	} {
		var all []diff.SessionChange
		for i := range 4 {
			all = append(all, change(i, diff.FieldEnv, "MODE", diff.Text("x"), diff.Text("y")))
		}
		groups, _ := changesAlike(resource.Live{}, append(all, c.odd), false)
		hidden := 0
		for _, g := range groups {
			hidden += len(g.hidden)
		}
		if hidden != c.hides {
			t.Errorf("%s: a screen hides %d of five changes, want %d", name, hidden, c.hides)
		}
	}
	from, to := diff.Slice{Profile: "1g.18gb", Size: 1}, diff.Slice{Profile: "2g.35gb", Size: 2}
	one, slot, profile := change(0, diff.FieldSlice, "", from, to), change(0, diff.FieldSlice, "", diff.Slice{Profile: "1g.18gb", Size: 1, Start: 3}, to), change(0, diff.FieldSlice, "", to, to)
	reads := func(c diff.SessionChange) string { return sessionReads(resource.Live{}, c) }
	if reads(one) != reads(slot) || reads(one) == reads(profile) {
		t.Error("slices in other slots read alike, and slices of other profiles do not")
	}
}
