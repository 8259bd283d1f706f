package render

import (
	"fmt"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// sessionReads is what two changes that read alike have in common: all but the
// instance and its slot.
func sessionReads(c diff.SessionChange) string {
	s := subject(c)
	fields := ""
	for _, f := range c.Fields {
		fields += f.Name + "\x00"
		if !strings.HasPrefix(f.Name, "env.") && f.Name != "slice" {
			fields += f.From + "\x00" + f.To + "\x00"
		}
	}
	return fmt.Sprint(c.Address.Name, c.Action, c.Reason, s.Target.Key, s.Slice.Profile, s.Fit, fields)
}

// subject is the session that a change is about: the new one, or the one that
// goes.
func subject(c diff.SessionChange) resource.Session {
	if c.After != nil {
		return *c.After
	}
	return c.Before.Session
}

// sessionChanges lists what happens to the sessions of one GPU, with the fit of
// each; those that stay are counted.
func (p *page) sessionChanges(v PlanView, b board) {
	t := &table{columns: []column{{}, {title: "SESSION", tight: true}, {title: "TARGET"}, {title: "SLICE"}, {title: "VRAM", right: true},
		{title: "FP32", right: true}, {title: "BANDWIDTH", right: true}, {title: "TENSOR", right: true}}}
	staying := 0
	for _, g := range alike(b.sessions, sessionReads, p.Verbose) {
		if g.shown[0].Action == diff.NoOp && !p.Verbose {
			staying += len(g.shown) + g.hidden
			continue
		}
		for _, c := range g.shown {
			p.sessionChange(t, v, c)
		}
		if g.hidden > 0 {
			t.across(4, p.more(g.hidden))
		}
	}
	for _, c := range b.leaving {
		t.across(4, inked(dim, c.Address.String()+" leaves for "+gpuName(v.Live, c.After.Slice.Host, c.After.Slice.GPU)))
	}
	if staying > 0 {
		t.across(4, inked(dim, stayWords(staying)))
	}
	p.table(t)
}

func stayWords(n int) string {
	if n == 1 {
		return "1 session stays as it is"
	}
	return fmt.Sprintf("%d sessions stay as they are", n)
}

func (p *page) sessionChange(t *table, v PlanView, c diff.SessionChange) {
	s := subject(c)
	words := plain
	if c.Action == diff.NoOp {
		words = dim
	}
	cells := []line{sign(c.Action), inked(words, c.Address.String()), inked(words, s.Target.ShortName()), inked(words, s.Slice.String())}
	if c.Action != diff.Delete {
		cells = append(cells, figures(words, s)...)
	}
	t.add(cells...)
	if c.Reason != "" && c.Action != diff.Delete {
		t.across(6, text(c.Reason))
	}
	name := 0
	for _, f := range c.Fields {
		name = max(name, columns(f.Name))
	}
	for _, f := range c.Fields {
		from, to := withGPUNames(v.Live, f.From), withGPUNames(v.Live, f.To)
		change := join(text(f.Name), line{pad(name - columns(f.Name))}, text("   "+from+" "), inked(dim, p.arrow()), text(" "+to), inked(dim, reasonSuffix(f.Reason)))
		t.across(6, keepBlanks(change))
	}
}

func reasonSuffix(reason string) string {
	if reason == "" {
		return ""
	}
	return "   (" + reason + ")"
}

// keepBlanks keeps runs of blanks, which align, from being made one.
func keepBlanks(l line) line {
	out := make(line, len(l))
	for i, one := range l {
		out[i] = piece{one.ink, strings.ReplaceAll(one.text, "  ", hard+hard)}
	}
	return out
}

// figures are a session's cap and the errors of its fit, a cell each.
func figures(i ink, s resource.Session) []line {
	return []line{
		inked(i, mib(s.Target.MemoryMiB)),
		inked(i, fit.Percent(s.Fit.FP32Ratio())),
		inked(i, fit.Percent(s.Fit.BandwidthRatio())),
		inked(i, times(s.Fit.TensorRatio())),
	}
}
