package resource

import (
	"fmt"
	"strconv"

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
func (m Moment) String() string {
	days, rest := int64(m)/int64(day), Seconds(int64(m)%int64(day))
	if rest < 0 {
		days, rest = days-1, rest+day
	}
	y, month, d := civil(days)
	return fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", y, month, d, rest/hour, rest%hour/minute, rest%minute)
}

var timestamp = pattern.Of(`^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$`)

// ParseMoment reads a point in time as RFC 3339 has it: 2026-12-01T18:00:00Z, or with +01:00 for Z. It leaves out a fraction of the second.
func ParseMoment(text string) (m Moment, ok bool) {
	parts := timestamp().FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	n := func(i int) int64 {
		v, _ := strconv.ParseInt("0"+parts[i], 10, 64) // digits only, or nothing
		return v
	}
	days := daysTo(n(1), n(2), n(3))
	y, month, d := civil(days)
	zone := Seconds(n(8))*hour + Seconds(n(9))*minute
	if parts[7] == "-" {
		zone = -zone
	}
	m = Moment(days*int64(day) + int64(Seconds(n(4))*hour+Seconds(n(5))*minute+Seconds(n(6))-zone))
	valid := y == n(1) && month == n(2) && d == n(3) && n(4) < 24 && n(5) < 60 && n(6) < 60 && n(8) < 24 && n(9) < 60
	return m, valid && m > 0
}

// Days of the Gregorian calendar, counted in eras of 400 years that begin on the first of March.
const (
	eraDays  = 146097
	untilNow = 719468 // from 0000-03-01 to 1970-01-01
)

// daysTo is the number of days from 1970-01-01 to a date.
func daysTo(y, month, d int64) int64 {
	if month <= 2 {
		y--
	}
	era := y / 400
	ofEra := y - era*400
	ofYear := (153*((month+9)%12)+2)/5 + d - 1
	return era*eraDays + ofEra*365 + ofEra/4 - ofEra/100 + ofYear - untilNow
}

// civil is the date so many days after 1970-01-01.
func civil(days int64) (y, month, d int64) {
	days += untilNow
	era := days / eraDays
	ofEra := days - era*eraDays
	yearOfEra := (ofEra - ofEra/1460 + ofEra/36524 - ofEra/(eraDays-1)) / 365
	ofYear := ofEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*ofYear + 2) / 153
	month = (shifted+2)%12 + 1
	if y = yearOfEra + era*400; month <= 2 {
		y++
	}
	return y, month, ofYear - (153*shifted+2)/5 + 1
}
