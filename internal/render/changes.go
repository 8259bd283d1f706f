package render

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/fit"
	"cosplay/internal/place"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// sessionReads is the text that changes which read alike have in common: all but the instance, its slot and its port.
func sessionReads(live resource.Live, c diff.SessionChange) string {
	s := subject(c)
	fields := ""
	for _, f := range c.Fields {
		fields += words.Field(f) + "\x00"
		if f.Kind == diff.FieldSSHPort {
			continue
		}
		for _, value := range []diff.Value{f.From, f.To} {
			if slice, is := value.(diff.Slice); is {
				slice.Start = 0
				value = slice
			}
			fields += words.Value(value, live) + "\x00"
		}
	}
	if c.MovedFrom != nil {
		fields += "moved from " + c.MovedFrom.Name
	}
	return fmt.Sprint(c.Address.Name, c.Action, words.Session(c), s.Target.Key, s.Slice.Profile, s.Fit, fields, containerReads(c))
}

// changesAlike groups changes that read alike. It returns those that a screen shows, and counts the sessions that stay.
func changesAlike(live resource.Live, all []diff.SessionChange, verbose bool) (groups []group[diff.SessionChange], staying int) {
	if !verbose {
		staying = count(all, func(c diff.SessionChange) bool { return c.Action == diff.NoOp })
		all = slices.DeleteFunc(slices.Clone(all), func(c diff.SessionChange) bool { return c.Action == diff.NoOp })
	}
	return alike(all, func(c diff.SessionChange) string { return sessionReads(live, c) }, verbose), staying
}

// subject is the session of a change: the new one, or the one that is removed.
func subject(c diff.SessionChange) resource.Session {
	if c.After != nil {
		return *c.After
	}
	return c.Before.Session
}

// sessionChanges lists what happens to the sessions of one GPU, with the fit of each; those that stay are counted.
func (p *page) sessionChanges(v PlanView, g plannedGPU) {
	session := []column{{}, {title: "SESSION", tight: true, brief: inBlock}}
	t := &table{columns: slices.Concat(session, textColumns("TARGET", "SLICE"), figureColumns("VRAM", "FP32", "BANDWIDTH", "TENSOR")),
		spare: []string{"TENSOR", "VRAM"}}
	var rows []diff.SessionChange
	groups, staying := changesAlike(v.Live, g.sessions, p.Verbose)
	for _, g := range groups {
		rows = append(rows, g.shown...)
		if len(g.hidden) > 0 {
			p.sessionRows(t, v, rows)
			t.across(4, p.moreSessions(g.hidden))
			rows = nil
		}
	}
	p.sessionRows(t, v, rows)
	for _, c := range g.leaving {
		t.across(4, inked(dim, c.Address.String()+" leaves for "+words.GPUs(v.Live, *c.After)))
	}
	for _, c := range g.also {
		t.across(4, inked(dim, fmt.Sprintf("%s has its device %d here", c.Address, g.device(c))))
	}
	if staying > 0 {
		t.across(4, inked(dim, prose.Plural(staying, "session stays as it is", "sessions stay as they are")))
	}
	p.table(t)
}

// inBlock is a session's address without the word "session".
func inBlock(address string) string { return strings.TrimPrefix(address, "session.") }

// moreSessions stands for sessions that read like those above. It names those that are removed or replaced.
func (s Style) moreSessions(hidden []diff.SessionChange) line {
	if a := hidden[0].Action; a != diff.Delete && a != diff.Replace {
		return s.more(len(hidden))
	}
	return join(inked(dim, s.dots()+" "), text("and "+resource.AddressNames(addressesOf(hidden), 0)), inked(dim, ", like them (--verbose shows all)"))
}

func addressesOf(changes []diff.SessionChange) []resource.Address {
	return each(changes, func(c diff.SessionChange) resource.Address { return c.Address })
}

// sessionRows lists sessions with their details. Details that are equal for several in a row follow the last of them.
func (p *page) sessionRows(t *table, v PlanView, changes []diff.SessionChange) {
	first := 0
	for i, c := range changes {
		t.add(sessionCells(c)...)
		details := p.sessionDetails(v, c)
		if i+1 < len(changes) && slices.EqualFunc(details, p.sessionDetails(v, changes[i+1]), slices.Equal[line]) {
			continue
		}
		lead := given(i > first, "each: ")
		for _, d := range details {
			t.across(6, join(text(lead), d))
			lead = strings.Repeat(hard, columns(lead))
		}
		first = i + 1
	}
}

func sessionCells(c diff.SessionChange) []line {
	s := subject(c)
	words := either(c.Action == diff.NoOp, dim, plain)
	cells := []line{sign(c.Action), inked(words, c.Address.String()), inked(words, s.Target.ShortName()), inked(words, s.PlaceWords())}
	if c.Action != diff.Delete {
		cells = append(append(cells, inked(words, mib(s.Target.MemoryMiB))), rates(words, s.Fit)...)
	}
	return cells
}

// sessionDetails states why a session changes, what it was, and its other differences.
func (p *page) sessionDetails(v PlanView, c diff.SessionChange) []line {
	live, details := v.Live, placementLines(v, c)
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
	return append(details, p.fieldLines(live, fields)...)
}

// placementLines state what the placement of a session means for it.
func placementLines(v PlanView, c diff.SessionChange) []line {
	details := each(v.warningsOf(c.Address), func(w place.Warning) line { return inked(drifted, w.Note) })
	if c.After == nil {
		return details
	}
	if n := v.sharers[c.Address]; n > 1 {
		details = append(details, text(busyWords(v.Live, *c.After, n)))
	}
	over := c.After.Fit.Got.MemoryMiB - c.After.Target.MemoryMiB
	if c.After.Request.Fraction > 0 && !c.After.Slice.Whole() && over > 0 {
		details = append(details, text(fmt.Sprintf("the smallest slice that fits has %d MiB more", over)))
	}
	return details
}

// fieldLines are the lines of fields that differ, with their values beside each other.
func (p *page) fieldLines(live resource.Live, fields []diff.Field) []line {
	name := 0
	for _, f := range fields {
		name = max(name, columns(words.Field(f)))
	}
	spaced := func(s string) string { return strings.ReplaceAll(s, "  ", hard+hard) }
	return each(fields, func(f diff.Field) line {
		what := words.Field(f)
		gap := strings.Repeat(hard, name-columns(what)+3)
		from, to := spaced(words.Value(f.From, live)), spaced(words.Value(f.To, live))
		return join(text(spaced(what)+gap+from+" "), inked(dim, p.arrow()), text(" "+to))
	})
}

// busyWords are the figures of a session while the n sessions are busy that share its part of a GPU.
func busyWords(live resource.Live, s resource.Session, n int) string {
	g, _ := live.GPU(s.Slice.Host, s.Slice.GPU)
	busy := fit.Busy(g.Model, s.Slice, s.Fit, n)
	rates := "bandwidth is " + fit.Percent(busy.BandwidthRatio())
	if ownSMs := s.Slice.Percent > 0 || s.Slice.Divides(); !ownSMs {
		rates = "FP32 is " + fit.Percent(busy.FP32Ratio()) + " and bandwidth " + fit.Percent(busy.BandwidthRatio())
	}
	return fmt.Sprintf("while the others are idle; when all %d are busy, %s", n, rates)
}

// movedWord states the address that a session had, and the name that its body keeps.
func movedWord(c diff.SessionChange) string {
	runtime := resource.RuntimeNamed(c.Before.Runtime)
	return "was " + c.MovedFrom.String() + given(runtime.Named, "; its "+runtime.Body+" is still called "+c.Before.BodyName())
}

// before states what a replaced session was, as far as its row shows what it will be, and returns the other fields.
func before(live resource.Live, c diff.SessionChange) (was string, others []diff.Field) {
	shown := []diff.Kind{diff.FieldTarget, diff.FieldSlice, diff.FieldGPU, diff.FieldFitClock}
	parts := make([]string, len(shown))
	for _, f := range c.Fields {
		i := slices.Index(shown, f.Kind)
		switch f.Kind {
		case diff.FieldTarget:
			parts[i] = c.Before.Target.ShortName()
		case diff.FieldSlice:
			parts[i] = together(slicesApart(c))
		case diff.FieldGPU:
			parts[i] = "on " + words.Value(f.From, live)
		case diff.FieldFitClock:
			parts[i] = "at " + words.Value(f.From, live)
		default:
			others = append(others, f)
		}
	}
	return strings.Join(present(parts...), ", "), others
}

// slicesApart names the slice that a session had, with its slot if the profile is the same.
func slicesApart(c diff.SessionChange) string {
	was := c.Before.Slice
	if c.After != nil && was.Profile != c.After.Slice.Profile && !was.Whole() {
		return was.Profile
	}
	return was.String()
}

// rates are the rates of a fit as parts of the target's, a cell each: FP32, bandwidth, tensor.
func rates(i ink, f resource.Fit) []line {
	return []line{inked(i, fit.Percent(f.FP32Ratio())), inked(i, fit.Percent(f.BandwidthRatio())), inked(i, times(f.TensorRatio()))}
}
