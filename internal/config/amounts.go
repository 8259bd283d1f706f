package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/pattern"
	"cosplay/internal/resource"
)

// duration reads a length of time, like "8h" or "1h30m".
func (v value) duration() (resource.Seconds, bool) {
	return parsed(v, resource.ParseSeconds, "a duration", `a number of days, hours, minutes or seconds, in this order and above 0. Write it like "8h", "1h30m" or "7d".`)
}

// moment reads a point in time, as timestamp() and timeadd() write it.
func (v value) moment() (resource.Moment, bool) {
	return parsed(v, resource.ParseMoment, "a time", `a date with a time and a time zone. Write it like "2026-12-01T18:00:00Z" or "2026-12-01T18:00:00+01:00".`)
}

// parsed is what parse makes of a text. Another text is an error, which says what was expected.
func parsed[T any](v value, parse func(string) (T, bool), kind, expected string) (T, bool) {
	var none T
	typed, ok := v.text()
	if !ok {
		return none, false
	}
	made, ok := parse(typed)
	if !ok {
		v.wrong(fmt.Sprintf("%s is not %s", v.name(), kind), "%q is not %s", typed, expected)
	}
	return made, ok
}

// mebibytes are the units of memory, in MiB.
var mebibytes = map[string]float64{"MiB": 1, "GiB": 1 << 10, "TiB": 1 << 20}

const (
	maxSizeMiB = 1 << 30 // 1 PiB
	sizeAdvice = `Write a size in MiB, GiB or TiB, like "32GiB" or "512MiB".`
)

var amount = pattern.Of(`^(\d+(?:\.\d+)?)\s*([A-Za-z]*)$`)

// size reads an amount of memory, "32GiB" or "1.5 TiB", as MiB. It refuses decimal units, because users who write GB
// mostly mean GiB.
func (v value) size(lowMiB int) (int, bool) {
	typed, ok := v.text()
	if !ok {
		return 0, false
	}
	bad := func(detail string, args ...any) (int, bool) {
		v.wrong(v.name()+" is not a size", detail, args...)
		return 0, false
	}
	m := amount().FindStringSubmatch(typed)
	if m == nil {
		return bad("%q is not a number and a unit. %s", typed, sizeAdvice)
	}
	number, unit := m[1], m[2]
	factor, known := mebibytes[unit]
	switch {
	case unit == "":
		return bad("%q has no unit. %s", typed, sizeAdvice)
	case !known:
		return bad("%q is not one of the units. %s%s", unit, sizeAdvice, meantSize(number, unit))
	}
	n, err := strconv.ParseFloat(number, 64)
	mib := n * factor
	switch {
	case err != nil || mib > maxSizeMiB:
		v.wrong(v.name()+" is too large", "%s is beyond all machines. %s", typed, sizeAdvice)
	case mib != math.Trunc(mib):
		return bad("%s is %s MiB, which is not whole. %s", typed, plain(mib), sizeAdvice)
	case mib < float64(lowMiB):
		v.wrong(v.name()+" is too small", "%s is below %d MiB. %s", typed, lowMiB, sizeAdvice)
	default:
		return int(mib), true
	}
	return 0, false
}

// meantSize suggests the unit that starts with the same letter: GiB for GB, g and gib.
func meantSize(number, unit string) string {
	for _, known := range slices.Sorted(maps.Keys(mebibytes)) {
		if strings.EqualFold(known[:1], unit[:1]) {
			return meant(number + known)
		}
	}
	return ""
}
