package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// Guarded refuses to destroy or replace sessions that are kept from it, by their
// blocks or, where these are gone, by the state.
func Guarded(intent *config.Intent, changes []diff.SessionChange) hcl.Diagnostics {
	blocks := make(map[resource.Address]*config.Session, len(intent.Sessions))
	for i := range intent.Sessions { // each is large: looked at, not copied
		blocks[intent.Sessions[i].Address] = &intent.Sessions[i]
	}
	var diags hcl.Diagnostics
	for _, c := range changes {
		if c.Action != diff.Delete && c.Action != diff.Replace {
			continue
		}
		s, there := blocks[c.Address]
		verb, why := "destroyed", ""
		if c.Action == diff.Replace {
			verb, why = "replaced", ": "+reasons(c)
		}
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprintf("%s may not be %s", c.Address, verb)}
		switch {
		case there && s.Lifecycle.PreventDestroy:
			at := s.Ranges.At("lifecycle.prevent_destroy")
			d.Subject = &at
			d.Detail = fmt.Sprintf("prevent_destroy keeps it, and the plan would have it %s%s. Undo that change, leave the session out with --exclude %s, or write prevent_destroy = false and apply that first.", verb, why, c.Address.Short())
		case !there && c.Before.PreventDestroy:
			d.Subject = &hcl.Range{}
			d.Detail = fmt.Sprintf("Its block is gone, but the state remembers its prevent_destroy. Put the block back; or with prevent_destroy = false, and apply that first; or let it go and leave it as it is:\n    removed {\n      from    = %s\n      destroy = false\n    }", c.Address)
		default:
			continue
		}
		diags = append(diags, d)
	}
	return diags
}

// reasons says in a few words why a session is replaced.
func reasons(c diff.SessionChange) string {
	var names []string
	for _, f := range c.Fields {
		names = append(names, words.Field(f))
	}
	switch reason, list := words.Session(c), strings.Join(names, ", "); {
	case reason == "":
		return list
	case list == "":
		return reason
	default:
		return reason + " (" + list + ")"
	}
}

// Renames warns where a session is destroyed and one just like it is created:
// its block may have been renamed, and could keep what it has.
func Renames(intent *config.Intent, changes []diff.SessionChange) hcl.Diagnostics {
	var gone, made []diff.SessionChange
	for _, c := range changes {
		switch c.Action {
		case diff.Delete:
			gone = append(gone, c)
		case diff.Create:
			if c.Before == nil {
				made = append(made, c)
			}
		case diff.NoOp, diff.Update, diff.Replace, diff.Move, diff.Import, diff.Forget:
		}
	}
	type names struct{ from, to string }
	pairs := map[names][]resource.Renamed{}
	for _, old := range gone {
		i := slices.IndexFunc(made, func(c diff.SessionChange) bool { return twins(*old.Before, *c.After) })
		if i < 0 {
			continue
		}
		pair := names{old.Address.Name, made[i].Address.Name}
		pairs[pair] = append(pairs[pair], resource.Renamed{From: old.Address, To: made[i].Address})
		made = slices.Delete(made, i, i+1)
	}
	var diags hcl.Diagnostics
	for _, pair := range slices.SortedFunc(maps.Keys(pairs), func(a, b names) int { return slices.Compare([]string{a.from, a.to}, []string{b.from, b.to}) }) {
		diags = append(diags, renameHint(intent, pairs[pair]))
	}
	return diags
}

// twins reports whether one session could go on as the other.
func twins(was resource.PriorSession, want resource.Session) bool {
	return was.Request.Equal(want.Request) && was.Spec.Image == want.Spec.Image && was.Runtime == want.Runtime &&
		slices.Equal(was.Command, want.Command) && was.Workspace == want.Workspace && maps.Equal(was.Env, want.Env)
}

func renameHint(intent *config.Intent, pairs []resource.Renamed) *hcl.Diagnostic {
	from, to := pairs[0].From.String(), pairs[0].To.String()
	sameKeys := !slices.ContainsFunc(pairs, func(r resource.Renamed) bool { return r.From.Key != r.To.Key })
	if sameKeys && pairs[0].From.Name != pairs[0].To.Name {
		from, to = "session."+pairs[0].From.Name, "session."+pairs[0].To.Name
	}
	more := ""
	if !sameKeys && len(pairs) > 1 {
		more = fmt.Sprintf("\nThe same goes for %d more, each with a moved block of its own.", len(pairs)-1)
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: fmt.Sprintf("%s is destroyed, and %s created just like it", from, to), Subject: &hcl.Range{},
		Detail: fmt.Sprintf("If it was only renamed, it can keep its slice and what runs in it. Write:\n    moved {\n      from = %s\n      to   = %s\n    }%s", from, to, more)}
	for _, s := range intent.Sessions {
		if s.Address == pairs[0].To {
			d.Subject = &s.Ranges.Decl
		}
	}
	return d
}
