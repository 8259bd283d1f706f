package ledger

import (
	"strconv"

	"cosplay/internal/resource"
)

// setting is one of the settings that can be read back.
type setting struct {
	name string
	of   func(resource.Settings) string // "" where it is not given
	copy func(to *resource.Settings, from resource.Settings)
}

var settings = []setting{
	{"MIG mode", func(s resource.Settings) string { return word(s.MIG, resource.OnOff) },
		func(to *resource.Settings, from resource.Settings) { to.MIG = from.MIG }},
	{"persistence mode", func(s resource.Settings) string { return word(s.Persistence, resource.OnOff) },
		func(to *resource.Settings, from resource.Settings) { to.Persistence = from.Persistence }},
	{"power limit", func(s resource.Settings) string { return word(s.PowerMW, exactWatts) },
		func(to *resource.Settings, from resource.Settings) { to.PowerMW = from.PowerMW }},
}

// exactWatts is a power limit to the last milliwatt: two limits have the same words
// only if they are the same.
func exactWatts(mw int) string { return strconv.FormatFloat(float64(mw)/1000, 'f', -1, 64) + " W" }

const clockName = "SM clock"

func word[T any](value *T, in func(T) string) string {
	if value == nil {
		return ""
	}
	return in(*value)
}

// Only picks the settings of one that are given in the other.
func Only(s, given resource.Settings) resource.Settings {
	var only resource.Settings
	for _, f := range settings {
		if f.of(given) != "" {
			f.copy(&only, s)
		}
	}
	return only
}

// Attempt notes settings before they are made: what may have been done has to be
// undone. What cosplay had set before is kept until the attempt has ended.
func Attempt(g *resource.Held, s resource.Settings, boot string) {
	for _, f := range settings {
		if f.of(s) == "" {
			continue
		}
		if f.of(g.Was) == "" {
			f.copy(&g.Was, g.Set)
		}
		f.copy(&g.Set, s)
	}
	if s.ClockMHz != nil {
		if g.Leaving == "" || g.Set.ClockMHz == nil { // a lock that is lifted again was still set
			g.Set.ClockMHz = s.ClockMHz
		}
		g.Lock = &resource.ClockLock{MHz: *s.ClockMHz, BootID: boot}
	}
	if base := g.Baseline.Persistence; s.Persistence != nil && !*s.Persistence && (base == nil || *base) {
		g.Unkept = true
	}
	if s.Persistence != nil && g.Unkept && g.Lock != nil && g.Lock.MHz != 0 { // the driver may forget the lock until the mode is on
		g.Lock.Done = false
	}
}

// takeBack removes the note of an attempt that changed nothing, except for settings that
// were noted again since. before is the page as it was before the attempt.
func takeBack(g *resource.Held, tried resource.Settings, before resource.Held) {
	for _, f := range settings {
		if f.of(tried) != "" && f.of(tried) == f.of(g.Set) {
			f.copy(&g.Set, before.Set)
			f.copy(&g.Was, before.Was)
		}
	}
	if mhz := tried.ClockMHz; mhz != nil && g.Lock != nil && g.Lock.MHz == *mhz && !g.Lock.Done {
		g.Set.ClockMHz, g.Lock = before.Set.ClockMHz, before.Lock
	}
}

// Settled notes how an attempt has ended: with the settings that the driver
// reports now, and the clock lock if it has confirmed one.
func Settled(g *resource.Held, now resource.Settings) {
	for _, f := range settings {
		if f.of(now) != "" {
			f.copy(&g.Set, now)
			f.copy(&g.Was, resource.Settings{})
		}
	}
	if now.ClockMHz != nil && g.Lock != nil && g.Lock.MHz == *now.ClockMHz {
		g.Lock.Done = true
	}
}

// rebooted forgets settings that a reboot of the host has ended: the driver starts
// with its own. MIG mode outlives a reboot. If found is nil, the page stays as it is.
func rebooted(g *resource.Held, found *Found) {
	if found == nil || g.BootID == "" || found.BootID == "" || g.BootID == found.BootID {
		return
	}
	for _, f := range settings[1:] {
		set, base, now := f.of(g.Set), f.of(g.Baseline), f.of(found.Settings)
		if set == "" || now == set || now == f.of(g.Was) {
			continue
		}
		if base != "" && now != base {
			note(g, resource.Left{Setting: f.name, Value: now, Baseline: base, Why: "the host was rebooted"}, resource.Holder{}, found)
		}
		f.copy(&g.Set, resource.Settings{})
		f.copy(&g.Was, resource.Settings{})
	}
	if g.Lock == nil || g.Lock.BootID != found.BootID {
		g.Set.ClockMHz, g.Lock = nil, nil
	}
	g.BootID = found.BootID
}
