package render

import (
	"fmt"
	"io"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// NoDrift reports that nothing was changed outside of cosplay, and what cosplay leaves alone.
func NoDrift(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	p.caughtUp(v)
	p.flow(0, 2, text("No drift: everything is as the last apply left it. "+leftAlone(v, false)))
	p.flush(w)
}

// Drift shows what was changed outside of cosplay, and writes nothing where nothing was that counts. What an apply
// has left unfinished counts too.
func Drift(w io.Writer, s Style, v PlanView) {
	if !v.Plan.Diff.NotAsApplied() && len(v.Notes) == 0 {
		return
	}
	p := newPage(s)
	p.caughtUp(v)
	if !v.Plan.Diff.NotAsApplied() {
		p.flush(w)
		return
	}
	if v.Plan.Diff.Drifted() {
		p.drift(v)
		p.information(v, false)
		p.gap()
	}
	p.unfinished(v)
	p.next(suggest("plan", v.Flags))
	p.flush(w)
}

// drift lists the drift, then what is informational.
func (p *page) drift(v PlanView) {
	var counts, information []diff.Drift
	for _, d := range v.Plan.Diff.Drift {
		if d.Informational {
			information = append(information, d)
		} else {
			counts = append(counts, d)
		}
	}
	p.flow(0, 2, join(inked(drifted, "Drift:"), text(" "+prose.Plural(len(counts), "thing was", "things were")+" changed outside of cosplay since the last apply.")))
	p.driftTable(v.Live, counts, drifted)
	if len(information) > 0 {
		p.gap()
		p.print(0, text("Left alone:"))
		p.driftTable(v.Live, information, plain)
	}
}

func (p *page) driftTable(live resource.Live, all []diff.Drift, to ink) {
	t := &table{indent: 2, columns: []column{{brief: inBlock}, {}, {}, {tight: true}, {tight: true}, {prose: true}}}
	for _, g := range alike(all, driftReads, p.Verbose) {
		for i, d := range g.shown {
			above := i > 0 && likewise(g.shown[i-1], d)
			below := i+1 < len(g.shown) && likewise(d, g.shown[i+1])
			cause := words.Cause(d)
			if above || below {
				cause = ""
			}
			t.add(text(driftName(live, d)), text(words.Drifted(d)), text(driftFrom(d, live)), inked(dim, p.arrow()), inked(to, words.Value(d.To, live)), inked(dim, cause))
			if above && !below {
				t.across(4, inked(dim, "each: "+words.Cause(d)))
			}
		}
		if len(g.hidden) > 0 {
			t.across(0, p.more(len(g.hidden)))
		}
	}
	p.table(t)
}

// likewise reports whether two informational things came about alike: that takes a sentence, which is said once.
func likewise(a, b diff.Drift) bool {
	return a.Informational && b.Informational && words.Cause(a) == words.Cause(b)
}

// driftFrom is the value after the last apply; "-" for a slice that did not exist.
func driftFrom(d diff.Drift, live resource.Live) string {
	if d.Class == diff.ForeignSlice {
		return "-"
	}
	return words.Value(d.From, live)
}

// driftReads is what drifts that read alike have in common: all that is shown but the instance of the session and the
// placement of its slice.
func driftReads(d diff.Drift) string {
	if d.Session == nil {
		return fmt.Sprint(d.Class, d.Host, words.Value(d.From, resource.Live{}), words.Value(d.To, resource.Live{}))
	}
	return fmt.Sprint(d.Class, d.Host, d.Session.Name, words.Drifted(d), words.Cause(d))
}

func driftName(live resource.Live, d diff.Drift) string {
	switch {
	case d.Session != nil:
		return d.Session.String()
	case d.GPU != "":
		return words.GPU(live, d.Host, d.GPU)
	}
	return "host " + d.Host
}

// unfinished lists the sessions that an interrupted or failed run left missing or incomplete.
func (p *page) unfinished(v PlanView) {
	var missing, incomplete []resource.Address
	for _, a := range v.Plan.Diff.Unfinished {
		_, there := v.Prior.Session(a)
		switch {
		case slices.Contains(v.Plan.Diff.Stuck, a):
		case there:
			incomplete = append(incomplete, a)
		default:
			missing = append(missing, a)
		}
	}
	report := func(all []resource.Address, what, fix string) {
		if len(all) == 0 {
			return
		}
		p.flow(0, 2, join(inked(drifted, "Unfinished:"), text(fmt.Sprintf(" %s %s %s: an apply or a destroy failed or was interrupted. %s", resource.AddressNames(all, 1), prose.Choose(len(all), "is", "are"), what, fix))))
		p.gap()
	}
	report(missing, "missing", "Fix: cosplay apply")
	report(incomplete, "incomplete", "Fix: cosplay apply")
	report(v.Plan.Diff.Stuck, "incomplete", "cosplay apply cannot complete what is on a GPU that cannot be read.")
}
