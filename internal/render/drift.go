package render

import (
	"fmt"
	"io"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

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
	p.driftTable(v.Live, counts, drifted)
	if len(told) > 0 {
		p.gap()
		p.flow(0, 2, text("Not ours, and left alone:"))
		p.driftTable(v.Live, told, plain)
	}
}

func (p *page) driftTable(live resource.Live, all []diff.Drift, to ink) {
	t := &table{indent: 2, columns: []column{{}, {}, {}, {tight: true}, {tight: true}, {prose: true}}}
	for _, g := range alike(all, driftReads, p.Verbose) {
		for _, d := range g.shown {
			t.add(text(driftName(live, d)), text(d.Thing), text(d.From), inked(dim, p.arrow()), inked(to, d.To), inked(dim, d.Cause))
		}
		if g.hidden > 0 {
			t.across(0, p.more(g.hidden))
		}
	}
	p.table(t)
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
