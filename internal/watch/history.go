package watch

import (
	"time"

	"cosplay/internal/prose"
)

// History limits how often the loop repairs the same session or GPU.
type History struct {
	perHour int
	of      map[string]*past
}

type past struct {
	repairs  []time.Time // of the last hour
	failures int         // since the last success
	next     time.Time   // before it, no repair is tried
}

const (
	firstWait = 30 * time.Second // after a failure; doubled after each further one
	lastWait  = time.Hour
)

// NewHistory allows a number of repairs of each session and GPU in an hour.
func NewHistory(perHour int) *History { return &History{perHour, map[string]*past{}} }

// Blocked says why the repair of something has to wait; "" if it does not.
func (h *History) Blocked(key string, now time.Time) Why {
	p := h.of[key]
	switch {
	case p == nil:
		return ""
	case now.Before(p.next):
		return BackingOff
	case len(p.recent(now)) >= h.perHour:
		return Exhausted
	}
	return ""
}

// Repaired records a repair, which succeeded or not. jitter, from 0 to 1, varies the wait after a failure by half of it,
// so that the loops of many hosts do not stay in step.
func (h *History) Repaired(key string, now time.Time, succeeded bool, jitter float64) {
	p := h.of[key]
	if p == nil {
		p = &past{}
		h.of[key] = p
	}
	p.repairs = append(p.recent(now), now)
	if succeeded {
		p.failures, p.next = 0, time.Time{}
		return
	}
	wait := min(lastWait, firstWait<<min(p.failures, 10))
	p.failures++
	p.next = now.Add(wait/2 + time.Duration(jitter*float64(wait)))
}

// Forget drops what is older than an hour, so that a loop that runs for months stays small.
func (h *History) Forget(now time.Time) {
	for key, p := range h.of {
		if p.repairs = p.recent(now); len(p.repairs) == 0 && now.After(p.next) {
			delete(h.of, key)
		}
	}
}

func (p *past) recent(now time.Time) []time.Time {
	return prose.Only(p.repairs, func(t time.Time) bool { return now.Sub(t) < time.Hour })
}
