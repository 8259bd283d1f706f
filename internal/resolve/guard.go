package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// Guarded refuses to destroy or replace sessions that have prevent_destroy, in their
// blocks or, after a block was removed, in the state.
func Guarded(intent *config.Intent, changes []diff.SessionChange) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, c := range changes {
		if c.Action != diff.Delete && c.Action != diff.Replace {
			continue
		}
		s := intent.Session(c.Address)
		verb, why := "destroyed", ""
		if c.Action == diff.Replace {
			verb, why = "replaced", ": "+reasons(c)
		}
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprintf("%s may not be %s", c.Address, verb)}
		switch {
		case s != nil && s.Lifecycle.PreventDestroy:
			d.Subject = s.Ranges.Of("lifecycle.prevent_destroy")
			d.Detail = fmt.Sprintf("It has prevent_destroy, and with this plan it would be %s%s. Undo that change, exclude the session with --exclude %s, or write prevent_destroy = false and apply that first.", verb, why, c.Address.Short())
		case s == nil && c.Before.PreventDestroy:
			d.Subject = &hcl.Range{}
			d.Detail = fmt.Sprintf("Its block was removed, but the state has its prevent_destroy. Restore the block; or restore it with prevent_destroy = false and apply that first; or remove the session from the state without destroying it:\n    removed {\n      from    = %s\n      destroy = false\n    }", c.Address)
		default:
			continue
		}
		diags = append(diags, d)
	}
	return diags
}

// reasons are the reason and the attributes for which a session is replaced.
func reasons(c diff.SessionChange) string {
	switch reason, list := words.Session(c), strings.Join(prose.Each(c.Fields, words.Field), ", "); {
	case reason == "":
		return list
	case list == "":
		return reason
	default:
		return reason + " (" + list + ")"
	}
}

// Renames warns if a session is destroyed and an equal one is created: the user may have
// renamed the block, and the session could keep its slice and its body.
func Renames(intent *config.Intent, changes []diff.SessionChange) hcl.Diagnostics {
	var removed, made []diff.SessionChange
	for _, c := range changes {
		if c.Action == diff.Delete {
			removed = append(removed, c)
		} else if c.Action == diff.Create && c.Before == nil {
			made = append(made, c)
		}
	}
	pairs := map[[2]string][]resource.Renamed{} // by the names of both blocks
	for _, old := range removed {
		i := slices.IndexFunc(made, func(c diff.SessionChange) bool { return twins(*old.Before, *c.After) })
		if i < 0 {
			continue
		}
		pair := [2]string{old.Address.Name, made[i].Address.Name}
		pairs[pair] = append(pairs[pair], resource.Renamed{From: old.Address, To: made[i].Address})
		made = slices.Delete(made, i, i+1)
	}
	byName := slices.SortedFunc(maps.Keys(pairs), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return prose.Each(byName, func(pair [2]string) *hcl.Diagnostic { return renameHint(intent, pairs[pair]) })
}

// twins reports whether one session could become the other by a change of its address.
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
		more = fmt.Sprintf("\nWrite a moved block for each of the %d others as well.", len(pairs)-1)
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: fmt.Sprintf("%s is destroyed, and %s, which is equal, is created", from, to), Subject: &hcl.Range{},
		Detail: fmt.Sprintf("If it was only renamed, it can keep its slice and what runs in it. Write:\n    moved {\n      from = %s\n      to   = %s\n    }%s", from, to, more)}
	if s := intent.Session(pairs[0].To); s != nil {
		d.Subject = &s.Ranges.Decl
	}
	return d
}
