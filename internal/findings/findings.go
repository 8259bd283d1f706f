// Package findings follows drift over time: what begins, what ends, and which of both a receiver has been sent. Pure.
package findings

import (
	"slices"

	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// Record is what is remembered of findings between two comparisons.
type Record struct {
	FormatVersion int     `json:"format_version"`
	Findings      []Entry `json:"findings"` // in the order in which they began
}

// FormatVersion is that of a record.
const FormatVersion = 1

// Entry is a finding, with its values as they were when it began.
type Entry struct {
	public.DatedDrift
	Sent []string `json:"sent,omitempty"` // the receivers that know that it began, and not that it ended
}

// keptEnd is how long the end of a finding waits for a receiver that no command uses any more, in s.
const keptEnd = 7 * 24 * 60 * 60

// Change is the result of a comparison.
type Change struct {
	Open    []public.DatedDrift // all of now, each with its beginning
	Begun   []public.DatedDrift // since the comparison before
	Ended   []public.DatedDrift // since the comparison before
	Record  Record              // for the next comparison
	Changed bool                // the record differs from the one before
}

// Known is Open, without a beginning where this comparison is the first that has the finding.
func (c Change) Known() []public.DatedDrift {
	known := slices.Clone(c.Open)
	for i, d := range known {
		if slices.ContainsFunc(c.Begun, func(b public.DatedDrift) bool { return identityOf(b.Drift) == identityOf(d.Drift) }) {
			known[i].Since = ""
		}
	}
	return known
}

// identity tells findings apart. A value that changes while a finding lasts does not make another finding.
type identity struct{ class, host, gpu, session, kind, name, slice string }

func identityOf(d public.Drift) identity {
	i := identity{class: d.Class, host: d.Host, gpu: d.GPU, kind: d.Kind, name: d.Name}
	if d.Session != nil {
		i.session = *d.Session
	} else if d.Informs {
		i.slice = d.To // several foreign slices of a GPU
	}
	return i
}

// Compare compares what is found now with what is remembered. now is the time in RFC 3339. What a reboot explains is
// not a finding: the reboot is.
func Compare(before Record, found []public.Drift, now string) Change {
	found = slices.DeleteFunc(slices.Clone(found), func(d public.Drift) bool { return d.ByReboot })
	c := Change{Record: Record{FormatVersion: FormatVersion}}
	there := map[identity]bool{}
	for _, d := range found {
		there[identityOf(d)] = true
	}
	since := map[identity]string{}
	for _, e := range before.Findings {
		id := identityOf(e.Drift)
		for _, at := range []*string{&e.Since, &e.Ended} {
			if age(*at, now) < 0 { // by a clock that was ahead
				*at, c.Changed = now, true
			}
		}
		switch {
		case there[id]:
			c.Changed = c.Changed || e.Ended != ""
			e.Ended, since[id] = "", e.Since
		case e.Ended == "":
			c.Changed, e.Ended = true, now
			c.Ended = append(c.Ended, e.DatedDrift)
			if len(e.Sent) == 0 {
				continue // no receiver waits for its end
			}
		case age(e.Ended, now) > keptEnd:
			c.Changed = true
			continue
		}
		c.Record.Findings = append(c.Record.Findings, e)
	}
	for _, d := range found {
		id := identityOf(d)
		if since[id] == "" {
			since[id], c.Changed = now, true
			begun := public.DatedDrift{Drift: d}
			begun.Since, begun.Before, begun.After = now, nil, nil // the words are enough
			c.Begun = append(c.Begun, begun)
			c.Record.Findings = append(c.Record.Findings, Entry{DatedDrift: begun})
		}
		d.Since = since[id]
		c.Open = append(c.Open, public.DatedDrift{Drift: d})
	}
	return c
}

// age is how long ago a recorded time is, in s: negative if it lies in the future, 0 if it is not known. Times are
// RFC 3339.
func age(at, now string) resource.Moment {
	then, known := resource.ParseMoment(at)
	moment, is := resource.ParseMoment(now)
	if !known || !is {
		return 0
	}
	return moment - then
}

// Unsent lists what a receiver has to be sent: beginnings of what affects the exit code, and the ends of what was sent
// to it.
func (r Record) Unsent(receiver string) (begun, ended []public.DatedDrift) {
	for _, e := range r.Findings {
		knows := slices.Contains(e.Sent, receiver)
		switch {
		case e.Ended != "" && knows:
			ended = append(ended, e.DatedDrift)
		case e.Ended == "" && !knows && !e.Informs:
			begun = append(begun, e.DatedDrift)
		}
	}
	return begun, ended
}

// Sent is the record after a receiver was sent these findings. While they were sent, findings may have begun, ended or
// come back: what has ended meanwhile and is remembered no more ended now, in RFC 3339.
func (r Record) Sent(receiver string, begun, ended []public.DatedDrift, now string) Record {
	same := func(d public.DatedDrift) func(Entry) bool {
		return func(e Entry) bool { return d.Since == e.Since && identityOf(d.Drift) == identityOf(e.Drift) }
	}
	r.FormatVersion, r.Findings = FormatVersion, slices.Clone(r.Findings)
	for _, d := range begun {
		i := slices.IndexFunc(r.Findings, same(d))
		if i < 0 {
			d.Ended = now
			i, r.Findings = len(r.Findings), append(r.Findings, Entry{DatedDrift: d})
		}
		r.Findings[i].Sent = append(slices.Clone(r.Findings[i].Sent), receiver)
	}
	for _, d := range ended {
		if i := slices.IndexFunc(r.Findings, same(d)); i >= 0 {
			r.Findings[i].Sent = slices.DeleteFunc(slices.Clone(r.Findings[i].Sent), func(s string) bool { return s == receiver })
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(e Entry) bool { return e.Ended != "" && len(e.Sent) == 0 })
	return r
}
