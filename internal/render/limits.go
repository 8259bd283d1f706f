package render

import (
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/fit"
	"cosplay/internal/prose"
)

// disguise is a kind of session on a kind of GPU, with what it cannot hide.
type disguise struct {
	of     string // "RTX 2060 on H200"
	limits []string
}

// limits says what the sessions that are made cannot hide: what all disguises share once, then what is each one's
// own.
func (p *page) limits(v PlanView) {
	all := disguises(v)
	if len(all) == 0 {
		return
	}
	p.gap()
	lead := inked(strong, "Cannot be hidden")
	if len(all) == 1 {
		p.flow(0, 2, join(lead, text(" ("+together(all[0].of)+"): "+prose.Stop(strings.Join(all[0].limits, "; ")))))
		return
	}
	shared := sharedLimits(all)
	words := ":"
	if len(shared) > 0 {
		words = ": " + prose.Stop(strings.Join(shared, "; "))
	}
	p.flow(0, 2, join(lead, text(words)))
	for _, d := range all {
		own := slices.DeleteFunc(slices.Clone(d.limits), func(l string) bool { return slices.Contains(shared, l) })
		if len(own) > 0 {
			p.flow(2, 4, text(together(d.of)+": "+prose.Stop(strings.Join(own, "; "))))
		}
	}
}

// disguises lists the kinds of sessions that a plan makes or changes, each once.
func disguises(v PlanView) []disguise {
	var all []disguise
	for _, c := range v.Plan.Diff.Sessions {
		if c.After == nil || c.Action == diff.NoOp {
			continue
		}
		g, ok := v.Live.GPU(c.After.Slice.Host, c.After.Slice.GPU)
		if !ok {
			continue
		}
		of := c.After.Target.ShortName() + " on " + g.Model.ShortModel()
		if slices.ContainsFunc(all, func(d disguise) bool { return d.of == of }) {
			continue
		}
		if limits := fit.Limits(g.Model, c.After.Target); len(limits) > 0 {
			all = append(all, disguise{of, limits})
		}
	}
	return all
}

// sharedLimits are those that every disguise has.
func sharedLimits(all []disguise) []string {
	var shared []string
	for _, l := range all[0].limits {
		if !slices.ContainsFunc(all, func(d disguise) bool { return !slices.Contains(d.limits, l) }) {
			shared = append(shared, l)
		}
	}
	return shared
}
