package render

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// sessionReads is what two changes that read alike have in common: all but the instance, its slot and its port.
func sessionReads(live resource.Live, c diff.SessionChange) string {
	s := subject(c)
	fields := ""
	for _, f := range c.Fields {
		fields += words.Field(f) + "\x00"
		switch f.Kind {
		case diff.FieldEnv, diff.FieldSlice, diff.FieldSSHPort:
		default:
			fields += words.Value(f.From, live) + "\x00" + words.Value(f.To, live) + "\x00"
		}
	}
	if c.MovedFrom != nil {
		fields += "moved from " + c.MovedFrom.Name
	}
	return fmt.Sprint(c.Address.Name, c.Action, words.Session(c), s.Target.Key, s.Slice.Profile, s.Fit, fields, containerReads(c))
}

// readsIn is sessionReads with a view of the hosts.
func readsIn(live resource.Live) func(diff.SessionChange) string {
	return func(c diff.SessionChange) string { return sessionReads(live, c) }
}

// subject is the session that a change is about: the new one, or the one that goes.
func subject(c diff.SessionChange) resource.Session {
	if c.After != nil {
		return *c.After
	}
	return c.Before.Session
}

// sessionChanges lists what happens to the sessions of one GPU, with the fit of each; those that stay are counted.
func (p *page) sessionChanges(v PlanView, g plannedGPU) {
	t := &table{columns: []column{{}, {title: "SESSION", tight: true, brief: inBlock}, {title: "TARGET"}, {title: "SLICE"}, {title: "VRAM", right: true},
		{title: "FP32", right: true}, {title: "BANDWIDTH", right: true}, {title: "TENSOR", right: true}},
		spare: []string{"TENSOR", "VRAM"}}
	staying := 0
	var rows []diff.SessionChange
	for _, g := range alike(g.sessions, readsIn(v.Live), p.Verbose) {
		if g.shown[0].Action == diff.NoOp && !p.Verbose {
			staying += len(g.shown) + len(g.hidden)
			continue
		}
		rows = append(rows, g.shown...)
		if len(g.hidden) > 0 {
			p.sessionRows(t, v.Live, rows)
			t.across(4, p.moreSessions(g.hidden))
			rows = nil
		}
	}
	p.sessionRows(t, v.Live, rows)
	for _, c := range g.leaving {
		t.across(4, inked(dim, c.Address.String()+" leaves for "+words.GPU(v.Live, c.After.Slice.Host, c.After.Slice.GPU)))
	}
	if staying > 0 {
		t.across(4, inked(dim, stayWords(staying)))
	}
	p.table(t)
}

// inBlock is a session's address without the word that all of them begin with.
func inBlock(address string) string { return strings.TrimPrefix(address, "session.") }

// moreSessions stands for sessions that read like those before them. What goes is named all the same.
func (s Style) moreSessions(hidden []diff.SessionChange) line {
	if a := hidden[0].Action; a != diff.Delete && a != diff.Replace {
		return s.more(len(hidden))
	}
	return join(inked(dim, s.dots()+" "), text("and "+resource.AddressNames(addressesOf(hidden), 0)), inked(dim, ", like them (--verbose shows all)"))
}

func addressesOf(changes []diff.SessionChange) []resource.Address {
	return each(changes, func(c diff.SessionChange) resource.Address { return c.Address })
}

func stayWords(n int) string {
	return prose.Plural(n, "session stays as it is", "sessions stay as they are")
}

// sessionRows lists sessions, each with what there is to say of it; what is the same of several in a row is said
// once, after the last of them.
func (p *page) sessionRows(t *table, live resource.Live, changes []diff.SessionChange) {
	first := 0
	for i, c := range changes {
		t.add(sessionCells(c)...)
		details := p.sessionDetails(live, c)
		if i+1 < len(changes) && slices.EqualFunc(details, p.sessionDetails(live, changes[i+1]), slices.Equal[line]) {
			continue
		}
		lead := ""
		if i > first {
			lead = "each: "
		}
		for _, d := range details {
			t.across(6, join(text(lead), d))
			lead = strings.Repeat(hard, columns(lead))
		}
		first = i + 1
	}
}

func sessionCells(c diff.SessionChange) []line {
	s := subject(c)
	words := plain
	if c.Action == diff.NoOp {
		words = dim
	}
	cells := []line{sign(c.Action), inked(words, c.Address.String()), inked(words, s.Target.ShortName()), inked(words, s.Slice.String())}
	if c.Action != diff.Delete {
		cells = append(cells, figures(words, s)...)
	}
	return cells
}

// sessionDetails says why a session changes, what it was and what else becomes different.
func (p *page) sessionDetails(live resource.Live, c diff.SessionChange) []line {
	var details []line
	if c.MovedFrom != nil {
		details = append(details, text(movedWord(c)))
	}
	if c.Imported != "" {
		details = append(details, text("will be imported: "+c.Imported))
	}
	if reason := words.Session(c); reason != "" && c.Action != diff.Delete {
		details = append(details, text(reason))
	}
	fields := c.Fields
	if c.Action == diff.Replace && c.Before != nil {
		var was string
		if was, fields = before(live, c); was != "" {
			details = append(details, inked(dim, "was "+was))
		}
	}
	if newContainer(c) {
		details = append(details, text(containerWords(c.After.Spec)))
	}
	name := 0
	for _, f := range fields {
		name = max(name, columns(words.Field(f)))
	}
	for _, f := range fields {
		what := words.Field(f)
		details = append(details, keepBlanks(join(text(what), line{pad(name - columns(what))}, text("   "+words.Value(f.From, live)+" "),
			inked(dim, p.arrow()), text(" "+words.Value(f.To, live)))))
	}
	return details
}

// movedWord says where a session was in the state, and what stays with it.
func movedWord(c diff.SessionChange) string {
	words := "was " + c.MovedFrom.String()
	if runtime := resource.RuntimeNamed(c.Before.Runtime); runtime.Named {
		words += "; its " + runtime.Body + " is still called " + resource.BodyName(c.Before.ID)
	}
	return words
}

// before says what a replaced session was, as far as its row tells what it will be, and gives the other fields back.
func before(live resource.Live, c diff.SessionChange) (was string, others []diff.Field) {
	by := map[diff.Kind]string{}
	for _, f := range c.Fields {
		switch f.Kind {
		case diff.FieldTarget:
			by[f.Kind] = c.Before.Target.ShortName()
		case diff.FieldSlice:
			by[f.Kind] = together(slicesApart(c))
		case diff.FieldGPU:
			by[f.Kind] = "on " + words.Value(f.From, live)
		case diff.FieldFitClock:
			by[f.Kind] = "at " + words.Value(f.From, live)
		default:
			others = append(others, f)
		}
	}
	var parts []string
	for _, kind := range []diff.Kind{diff.FieldTarget, diff.FieldSlice, diff.FieldGPU, diff.FieldFitClock} {
		if by[kind] != "" {
			parts = append(parts, by[kind])
		}
	}
	return strings.Join(parts, ", "), others
}

// slicesApart names the slice that a session had; the slot only where that alone is another one.
func slicesApart(c diff.SessionChange) string {
	was := c.Before.Slice
	if c.After != nil && was.Profile != c.After.Slice.Profile && !was.Whole() {
		return was.Profile
	}
	return was.String()
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
