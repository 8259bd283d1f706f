package render

import (
	"fmt"
	"io"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// lockWords reports the clock locks that are not provable while their GPUs are idle; "" for none. A plan leaves out
// those that it sends again or gives up.
func lockWords(v PlanView, planned bool) string {
	type key struct{ host, uuid string }
	sent := map[key]bool{}
	for _, c := range v.Plan.Diff.GPUs {
		sent[key{c.Host, c.UUID}] = planned && (c.GiveBack || c.Settings.Has(resource.SMClock))
	}
	var on []string
	for _, l := range v.Plan.Diff.Unproven {
		if !sent[key{l.Host, l.GPU}] {
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

// information is what plan and drift report and what is no drift.
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
