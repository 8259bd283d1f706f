package render

import (
	"fmt"
	"io"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// NoDrift says that nothing was changed outside of cosplay, and which slices of
// others there are.
func NoDrift(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	said := "No drift: everything is as the last apply left it. " + foreignWords(v)
	p.flow(0, 2, text(said))
	p.flush(w)
}

// Drift shows what was changed outside of cosplay, and writes nothing where
// nothing was that counts.
func Drift(w io.Writer, s Style, v PlanView) {
	if !v.Plan.Diff.Drifted() {
		return
	}
	p := newPage(s)
	p.drift(v)
	p.gap()
	p.next(suggest("plan", v.Flags))
	p.flush(w)
}

// drift lists what counts; slices of others follow, told and no more.
func (p *page) drift(v PlanView) {
	var counts, told []diff.Drift
	for _, d := range v.Plan.Diff.Drift {
		if d.Told {
			told = append(told, d)
		} else {
			counts = append(counts, d)
		}
	}
	were := " things were"
	if len(counts) == 1 {
		were = " thing was"
	}
	p.flow(0, 2, join(inked(drifted, "Drift:"), text(fmt.Sprintf(" %d%s changed outside of cosplay since the last apply.", len(counts), were))))
	t := &table{indent: 2, columns: []column{{brief: inBlock}, {}, {}, {tight: true}, {tight: true}, {prose: true}}}
	p.driftRows(t, v.Live, counts, drifted)
	if len(told) > 0 {
		t.across(0, nil)
		t.across(-t.indent, text("Not ours, and left alone:"))
		p.driftRows(t, v.Live, told, plain)
	}
	p.table(t)
}

func (p *page) driftRows(t *table, live resource.Live, all []diff.Drift, to ink) {
	for _, g := range alike(all, driftReads, p.Verbose) {
		for _, d := range g.shown {
			cause := d.Cause
			if d.Told {
				cause = "" // the line above says it
			}
			t.add(text(driftName(live, d)), text(d.Thing), text(d.From), inked(dim, p.arrow()), inked(to, d.To), inked(dim, cause))
		}
		if len(g.hidden) > 0 {
			t.across(0, p.more(len(g.hidden)))
		}
	}
}

// driftReads is what drifts that read alike have in common.
func driftReads(d diff.Drift) string {
	if d.Session == nil {
		return fmt.Sprint(d.Class, d.Host, d.From, d.To)
	}
	return fmt.Sprint(d.Class, d.Host, d.Session.Name, d.Cause)
}

func driftName(live resource.Live, d diff.Drift) string {
	switch {
	case d.Session != nil:
		return d.Session.String()
	case d.GPU != "":
		return gpuName(live, d.Host, d.GPU)
	}
	return "host " + d.Host
}
