// Package findings follows drift over time: what begins, what ends, and which of both a receiver has been sent. Pure.
package findings

import (
	"slices"

	"cosplay/internal/public"
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
	Sent bool `json:"sent,omitempty"` // a receiver knows that it began
}

// Change is the result of a comparison.
type Change struct {
	Open    []public.DatedDrift // all of now, each with its beginning
	Begun   []public.DatedDrift // since the comparison before
	Ended   []public.DatedDrift // since the comparison before
	Record  Record              // for the next comparison
	Changed bool                // the record differs from the one before
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
		switch {
		case there[id]:
			c.Changed = c.Changed || e.Ended != ""
			e.Ended, since[id] = "", e.Since
		case e.Ended == "":
			c.Changed, e.Ended = true, now
			c.Ended = append(c.Ended, e.DatedDrift)
			if !e.Sent {
				continue // no receiver waits for its end
			}
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
		c.Open = append(c.Open, public.DatedDrift{Drift: d, Since: since[id]})
	}
	return c
}

// Unsent lists what a receiver has to be sent: beginnings of what affects the exit code, and the ends of what was sent.
func (r Record) Unsent() (begun, ended []public.DatedDrift) {
	for _, e := range r.Findings {
		switch {
		case e.Ended != "":
			ended = append(ended, e.DatedDrift)
		case !e.Sent && !e.Informs:
			begun = append(begun, e.DatedDrift)
		}
	}
	return begun, ended
}

// Sent is the record after everything unsent was sent.
func (r Record) Sent() Record {
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(e Entry) bool { return e.Ended != "" })
	for i := range r.Findings {
		r.Findings[i].Sent = r.Findings[i].Sent || !r.Findings[i].Informs
	}
	return r
}
