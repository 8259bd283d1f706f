// Package lifetime decides when a session expires, from its attributes, the moment at which it came up and its last
// activity. Pure: the caller states the time.
package lifetime

import "cosplay/internal/resource"

// Why is the attribute by which a session expires, by its name in the language.
type Why string

// The reasons.
const (
	TTL         Why = "ttl"
	IdleTimeout Why = "idle_timeout"
	StopAt      Why = "stop_at"
)

// End is when a session expires, if nothing becomes active in it until then.
type End struct {
	At  resource.Moment // 0 if it never does
	Why Why
}

// Of is the end of a session. lastActive is the last moment at which it was seen active; 0 if it never was.
func Of(s resource.PriorSession, lastActive resource.Moment) End {
	var end End
	earlier := func(at resource.Moment, why Why) {
		if end.At == 0 || at < end.At {
			end = End{at, why}
		}
	}
	if s.Lifetime.StopAt != 0 {
		earlier(s.Lifetime.StopAt, StopAt)
	}
	if s.Lifetime.TTL != 0 && s.UpAt != 0 {
		earlier(s.UpAt+resource.Moment(s.Lifetime.TTL), TTL)
	}
	if since := max(s.UpAt, lastActive); s.Lifetime.IdleTimeout != 0 && since != 0 {
		earlier(since+resource.Moment(s.Lifetime.IdleTimeout), IdleTimeout)
	}
	if end.At != 0 {
		end.At = max(end.At, s.ExtendedTo)
	}
	return end
}

// Left is how long a session still has; 0 once it has expired. A session without an end has no time left to report.
func (e End) Left(now resource.Moment) resource.Seconds {
	return resource.Seconds(max(0, e.At-now))
}

// Expired reports whether the end has come: to the second, at the end itself.
func (e End) Expired(now resource.Moment) bool { return e.At != 0 && now >= e.At }

// Extended is the end of a session that the user extends by a length of time: from its end if that is still to come,
// and from now if it has expired or can only become idle.
func Extended(s resource.PriorSession, by resource.Seconds, now resource.Moment) resource.Moment {
	fixed := s
	fixed.Lifetime.IdleTimeout = 0
	return max(now, Of(fixed, 0).At, s.ExtendedTo) + resource.Moment(by)
}
