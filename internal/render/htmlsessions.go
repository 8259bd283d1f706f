package render

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// Of more kinds, and of more sessions of a kind, the others are folded.
const (
	kindsShown    = 24
	sessionsShown = 12
)

// sheetKind are sessions of a block that are alike: on the same target, kind of slice and host.
type sheetKind struct {
	Class, Name, Of string
	Facts           []string
	Rates           []sheetRate
	Note            string
	Table           sessionRows
	More            *sessionRows // those that are folded; nil for none
	wrong           bool         // something is, with one of them
}

// sessionRows are sessions with the columns that they have.
type sessionRows struct {
	Has  columnsOf
	Rows []sheetSession
}

// columnsOf says which columns have something in them.
type columnsOf struct{ Memory, Up, Left, SSH, Note bool }

// sheetRate is a figure of a fit, with a bar from the middle of a logarithmic scale.
type sheetRate struct {
	Name, Error, Got, Want string
	Has, Under             bool
	From, Width            int // of the bar
}

// sheetSession is a session as it is.
type sheetSession struct {
	Class, Label, Name, GPU, Slice, Up, At string
	State, Left, SSH, Note                 line
	Memory                                 bar
	Used                                   line
	wrong                                  bool
}

// kinds are the sessions of the state, those that are alike together.
func (f fleet) kinds(s Style) folded[sheetKind] {
	sharers := resource.Sharers(each(f.Prior.Sessions, func(s resource.PriorSession) resource.Session { return s.Session }))
	var groups prose.Groups[int]
	for i, one := range f.Prior.Sessions {
		slice := one.Slice
		groups.Add(fmt.Sprint(one.Address.Name, "\x00", one.Target.Key, "\x00", one.Target.Fraction, slice.Host, "\x00", slice.Profile, slice.Sharing, slice.Percent,
			one.Fit, len(one.More), one.Runtime, one.Spec.Image, sharers[one.Address]), i)
	}
	all := each(groups.Texts, func(text string) sheetKind {
		members := groups.Of[text]
		return f.kind(s, members, sharers[f.Prior.Sessions[members[0]].Address])
	})
	return foldWrong(s, all, kindsShown, func(k sheetKind) bool { return k.wrong })
}

// kind is a kind of sessions, n of which share a part of a GPU.
func (f fleet) kind(s Style, members []int, sharers int) sheetKind {
	first := f.Prior.Sessions[members[0]]
	on := first.Target.ShortName() + " on " + fit.SliceName(first.Slice.Profile)
	if g, there := f.Live.GPU(first.Slice.Host, first.Slice.GPU); there {
		on += " of " + g.Model.Name
	}
	running := count(members, func(i int) bool { return f.states[i] == resource.Running })
	n := len(members)
	k := sheetKind{Class: f.hue(first.Address.Name), Name: "session." + first.Address.Name, Of: on, Rates: ratesOf(first.Fit)}
	k.Facts = present(prose.Count(n, "session")+", "+either(running == n, "all", fmt.Sprint(running))+" running", mib(first.Target.MemoryMiB)+given(n > 1, " each"),
		given(first.Fit.ClockMHz, fmt.Sprintf("fit at %d MHz", first.Fit.ClockMHz)), given(len(f.Live.Hosts) > 1, "host "+first.Slice.Host),
		first.Runtime+" runtime", given(first.Spec.Image, "image "+first.Spec.Image))
	if sharers > 1 {
		k.Note = prose.Sentence("These figures are " + strings.ReplaceAll(busyWords(f.Live, first.Session, sharers), " %", hard+"%"))
	}
	rows := each(members, func(i int) sheetSession { return f.sessionSheet(s, i) })
	var has columnsOf
	for _, r := range rows {
		has = columnsOf{has.Memory || len(r.Used) > 0, has.Up || r.Up != "", has.Left || r.At != "", has.SSH || len(r.SSH) > 0, has.Note || r.Note.width() > 0}
	}
	shown := foldWrong(s, rows, sessionsShown, func(r sheetSession) bool { return r.wrong })
	k.wrong = rows[0].wrong // it would be first
	if k.Table = (sessionRows{has, shown.Shown}); len(shown.More) > 0 {
		k.More = &sessionRows{has, shown.More}
	}
	return k
}

// sessionSheet has the cells of a session's row.
func (f fleet) sessionSheet(s Style, i int) sheetSession {
	one, state := f.Prior.Sessions[i], f.states[i]
	use, counted := f.Used[one.Address]
	out := sheetSession{Class: f.hue(one.Address.Name), Label: f.labels.of(one.Address), Name: one.Address.Short(), State: stateCell(state),
		GPU: strings.TrimPrefix(words.GPUs(f.Live, one.Session), "GPU "), Slice: one.PlaceWords(), SSH: f.sshCell(one),
		Note: newPage(s).driftCell(state, f.drift[one.Address])}
	if one.UpAt != 0 && f.Now > one.UpAt && state == resource.Running {
		out.Up = (resource.Seconds(f.Now - one.UpAt)).String()
	}
	if end, ends := f.Ends[one.Address]; ends {
		out.Left, out.At = timeLeft(f.Ends, one.Address, f.Now), end.At.String()+" ("+end.Why+")"
	}
	if counted && !use.IsZero() {
		out.Memory = barOf(use.PeakMiB, one.Target.MemoryMiB)
		now := either(len(one.Slices()) == 1, use.NowBytes, 0) // of several devices, only the peak is of one
		out.Used = text(given(now, fmt.Sprintf("%d now, ", bytesMiB(use.NowBytes))) + fmt.Sprintf("peak %d of %s", use.PeakMiB, mib(one.Target.MemoryMiB)))
		if use.RanOut() > 0 {
			out.Used = join(peakCell(use), text(", "), out.Used)
		}
	}
	out.wrong = state != resource.Running || slices.ContainsFunc(out.Note, func(p piece) bool { return p.ink == drifted }) || use.RanOut() > 0
	return out
}

// The scale of fit errors: a bar from the middle to an end is a rate of widest times the target's, or one by it.
const (
	scaleHalf = 60 // units
	widest    = 8.0
)

// ratesOf are the figures of a fit, as plan prints their errors.
func ratesOf(f resource.Fit) []sheetRate {
	one := func(name string, ratio float64, words, unit string, got, want float64) sheetRate {
		r := sheetRate{Name: name, Error: words, Got: fmt.Sprintf("%.1f %s", got, unit), Want: fmt.Sprintf("%.1f %s", want, unit)}
		if ratio <= 0 || math.IsNaN(ratio) || math.IsInf(ratio, 0) {
			return r
		}
		at := max(-1, min(1, math.Log(ratio)/math.Log(widest)))
		r.Has, r.Under, r.Width = true, at < 0, int(math.Round(math.Abs(at)*scaleHalf))
		r.From = either(r.Under, scaleHalf-r.Width, scaleHalf)
		return r
	}
	all := []sheetRate{
		one("FP32", f.FP32Ratio(), fit.Percent(f.FP32Ratio()), "TFLOPS", f.Got.FP32TFLOPS, f.Want.FP32TFLOPS),
		one("Bandwidth", f.BandwidthRatio(), fit.Percent(f.BandwidthRatio()), "GB/s", f.Got.BandwidthGBs, f.Want.BandwidthGBs),
		one("Tensor", f.TensorRatio(), times(f.TensorRatio()), "TFLOPS", f.Got.TensorTFLOPS, f.Want.TensorTFLOPS),
	}
	if f.Want.TensorTFLOPS == 0 {
		all[2].Want = "none"
	}
	return all
}
