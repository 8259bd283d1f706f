package render

import (
	"fmt"
	"io"
	"strings"
)

// lockWords reports the clock locks that are not provable while their GPUs are
// idle; "" for none. A plan leaves out those that it sends again or gives up.
func lockWords(v PlanView, planned bool) string {
	type key struct{ host, uuid string }
	sent := map[key]bool{}
	for _, c := range v.Plan.Diff.GPUs {
		sent[key{c.Host, c.UUID}] = planned && (c.GiveBack || c.Settings.ClockMHz != nil)
	}
	var on []string
	for _, l := range v.Plan.Diff.Unproven {
		if !sent[key{l.Host, l.GPU}] {
			on = append(on, gpuName(v.Live, l.Host, l.GPU))
		}
	}
	if len(on) == 0 {
		return ""
	}
	lock, is := "lock", "is"
	if len(on) > 1 {
		lock, is = "locks", "are"
	}
	if len(on) > 3 {
		on = []string{count(len(on), "GPU")}
	}
	return fmt.Sprintf("The clock %s of %s %s not provable while idle; cosplay verify proves %s under a short load.",
		lock, strings.Join(on, ", "), is, map[string]string{"is": "it", "are": "them"}[is])
}

// locks prints the same on its own.
func (p *page) locks(v PlanView, planned bool) {
	if words := lockWords(v, planned); words != "" {
		p.gap()
		p.flow(0, 2, text(words))
	}
}

// UnprovenLocks reports the clock locks that are not provable while their GPUs are
// idle, and nothing where there are none.
func UnprovenLocks(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	p.locks(v, false)
	p.flush(w)
}
