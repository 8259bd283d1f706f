package resource

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cosplay/internal/pattern"
)

// Moment is a point in time, in seconds since 1970 in UTC; 0 is none.
type Moment int64

// Seconds is a length of time; 0 is none.
type Seconds int64

// Lifetime is after what a session expires. Zero fields have no effect.
type Lifetime struct {
	TTL         Seconds `json:"ttl_s,omitempty"`          // since it came up
	IdleTimeout Seconds `json:"idle_timeout_s,omitempty"` // without activity
	StopAt      Moment  `json:"stop_at,omitempty"`
}

// End is when a session expires, if nothing becomes active in it until then.
type End struct {
	At  Moment // 0 if it never does
	Why string // the attribute by which it does, by its name in the language
}

// End is the end of a session. lastActive is the last moment at which it was seen active; 0 if it never was.
func (s PriorSession) End(lastActive Moment) End {
	var end End
	earlier := func(at Moment, why string) {
		if end.At == 0 || at < end.At {
			end = End{at, why}
		}
	}
	if s.Lifetime.StopAt != 0 {
		earlier(s.Lifetime.StopAt, "stop_at")
	}
	if s.Lifetime.TTL != 0 && s.UpAt != 0 {
		earlier(s.UpAt+Moment(s.Lifetime.TTL), "ttl")
	}
	if since := max(s.UpAt, lastActive); s.Lifetime.IdleTimeout != 0 && since != 0 {
		earlier(since+Moment(s.Lifetime.IdleTimeout), "idle_timeout")
	}
	if end.At != 0 {
		end.At = max(end.At, s.ExtendedTo)
	}
	return end
}

// Left is how long a session still has; 0 once it has expired. A session without an end has no time left to report.
func (e End) Left(now Moment) Seconds { return Seconds(max(0, e.At-now)) }

// Expired reports whether the end has come: to the second, at the end itself.
func (e End) Expired(now Moment) bool { return e.At != 0 && now >= e.At }

// Extended is the end of a session that the user extends by a length of time: from its end if that is still to come,
// and from now if it has expired or can only become idle.
func (s PriorSession) Extended(by Seconds, now Moment) Moment {
	fixed := s
	fixed.Lifetime.IdleTimeout = 0
	return max(now, fixed.End(0).At, s.ExtendedTo) + Moment(by)
}

const (
	minute Seconds = 60
	hour           = 60 * minute
	day            = 24 * hour
)

// String writes a length of time as the language has it: 1d12h, 8h, 90s as 1m30s.
func (s Seconds) String() string {
	if s <= 0 {
		return "0s"
	}
	text := ""
	for _, u := range []struct {
		unit Seconds
		name string
	}{{day, "d"}, {hour, "h"}, {minute, "m"}, {1, "s"}} {
		if n := s / u.unit; n > 0 {
			text += fmt.Sprint(int64(n)) + u.name
		}
		s %= u.unit
	}
	return text
}

var length = pattern.Of(`^(?:(\d{1,5})d)?(?:(\d{1,7})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s)?$`)

// ParseSeconds reads a length of time like 8h, 1h30m or 7d. It must be longer than 0.
func ParseSeconds(text string) (s Seconds, ok bool) {
	parts := length().FindStringSubmatch(text)
	for i, unit := range []Seconds{day, hour, minute, 1} {
		if parts != nil {
			n, _ := strconv.ParseInt("0"+parts[i+1], 10, 64) // digits only, or nothing
			s += Seconds(n) * unit
		}
	}
	return s, s > 0
}

// String writes a point in time as RFC 3339 has it, in UTC.
func (m Moment) String() string { return time.Unix(int64(m), 0).UTC().Format(time.RFC3339) }

// ParseMoment reads a point in time as RFC 3339 has it: 2026-12-01T18:00:00Z, or with +01:00 for Z. It leaves out a
// fraction of the second.
func ParseMoment(text string) (m Moment, ok bool) {
	var at time.Time
	err := at.UnmarshalText([]byte(strings.ToUpper(text)))
	return Moment(at.Unix()), err == nil && at.Unix() > 0
}
