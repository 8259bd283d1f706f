package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// lockWords reports the clock locks that are not provable while their GPUs are idle; "" for none. A plan leaves out
// those that it sends again or gives up.
func lockWords(v PlanView, planned bool) string {
	var on []string
	for _, l := range v.Plan.Diff.Unproven {
		if !slices.ContainsFunc(v.Plan.Diff.GPUs, func(c diff.GPUChange) bool {
			return planned && c.Host == l.Host && c.UUID == l.GPU && (c.GiveBack || c.Settings.Has(resource.SMClock))
		}) {
			on = append(on, words.GPU(v.Live, l.Host, l.GPU))
		}
	}
	if len(on) == 0 {
		return ""
	}
	locks, is, it := prose.Choose(len(on), "lock", "locks"), prose.Choose(len(on), "is", "are"), prose.Choose(len(on), "it", "them")
	if len(on) > 3 {
		on = []string{prose.Count(len(on), "GPU")}
	}
	return fmt.Sprintf("The clock %s of %s %s not provable while idle; cosplay verify proves %s under a short load.",
		locks, strings.Join(on, ", "), is, it)
}

// sliceWords reports the slices that count as cosplay's without a proof; "" for none.
func sliceWords(v PlanView) string {
	var all []resource.Address
	agree := "Boot, placement and ids agree"
	for _, s := range v.Plan.Diff.Unowned {
		all = append(all, s.Session)
		if !s.SameBoot {
			agree = "Placement and ids agree"
		}
	}
	if len(all) == 0 {
		return ""
	}
	slice, is, it := prose.Choose(len(all), "slice", "slices"), prose.Choose(len(all), "is", "are"), prose.Choose(len(all), "it", "them")
	return fmt.Sprintf("It is not provable that the %s of %s %s still cosplay's: the driver names slices by instance ids, so a recreated slice has the same name. %s with the records, so cosplay counts %s as its own.",
		slice, resource.AddressNames(all, 3), is, agree, it)
}

// information is what plan and drift report besides drift.
func information(v PlanView, planned bool) string {
	return strings.TrimSpace(sliceWords(v) + " " + lockWords(v, planned))
}

// information prints the same on its own.
func (p *page) information(v PlanView, planned bool) {
	if words := information(v, planned); words != "" {
		p.gap()
		p.flow(0, 2, text(words))
	}
}

// Information reports the clock locks and slices that are not provable, and nothing where there are none.
func Information(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	p.information(v, false)
	p.flush(w)
}

// disguise is a kind of session on a kind of GPU, with what it cannot hide.
type disguise struct {
	of     string // "RTX 2060 on H200"
	limits []string
}

// limits lists what new and changed sessions cannot hide: first what all of them share, then the rest.
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
	shared := slices.DeleteFunc(slices.Clone(all[0].limits), func(l string) bool { // that every disguise has
		return slices.ContainsFunc(all, func(d disguise) bool { return !slices.Contains(d.limits, l) })
	})
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

// disguises lists the kinds of sessions that a plan creates or changes.
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
