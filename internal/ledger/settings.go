package ledger

import (
	"strconv"

	"cosplay/internal/resource"
)

// Exact writes a value of a setting to its last digit: two values have the same text
// only if they are the same. It is "" where there is none.
func Exact(s resource.Settings, which resource.Setting) string {
	value, given := s.Get(which)
	switch {
	case !given:
		return ""
	case which == resource.PowerLimit:
		return strconv.FormatFloat(float64(value)/1000, 'f', -1, 64) + " W"
	}
	return which.Text(value)
}

// Attempt records settings before they are made, because they may have to be undone. The
// values that cosplay had set before stay on record until the attempt has ended.
func Attempt(g *resource.Page, s resource.Settings, boot string) {
	for which, value := range s.All() {
		if which.Readable() {
			if !g.Was.Has(which) {
				g.Was = g.Was.Copy(which, g.Set)
			}
			g.Set = g.Set.With(which, value)
		}
	}
	if mhz, sets := s.Get(resource.SMClock); sets {
		if g.Leaving == "" || !g.Set.Has(resource.SMClock) { // a lock that is lifted again was still set
			g.Set = g.Set.With(resource.SMClock, mhz)
		}
		g.Lock = &resource.ClockLock{MHz: mhz, BootID: boot}
	}
	if s.Is(resource.PersistenceMode, resource.Off) && !g.Baseline.Is(resource.PersistenceMode, resource.Off) {
		g.Unkept = true
	}
	if s.Has(resource.PersistenceMode) && g.Unkept && g.Lock != nil && g.Lock.MHz != 0 { // the driver may forget the lock until the mode is on
		g.Lock.Done = false
	}
}

// unknown lists the settings that the page has no baseline of, because they were not read when the first holder acquired
// the GPU, and that cosplay has not changed since.
func unknown(g resource.Page, s resource.Settings) (all []resource.Setting) {
	for which := range s.All() {
		if which.Readable() && len(g.Holders) > 0 && !g.Baseline.Has(which) && !g.Set.Has(which) && !g.Was.Has(which) {
			all = append(all, which)
		}
	}
	return all
}

// takeBack removes the record of an attempt that changed nothing, except for settings that
// were recorded again since. before is the page from before the attempt.
func takeBack(g *resource.Page, tried resource.Settings, before resource.Page) {
	for which, value := range tried.All() {
		if which.Readable() && g.Set.Is(which, value) {
			g.Set, g.Was = g.Set.Copy(which, before.Set), g.Was.Copy(which, before.Was)
		}
	}
	if mhz, tried := tried.Get(resource.SMClock); tried && g.Lock != nil && g.Lock.MHz == mhz && !g.Lock.Done {
		g.Set, g.Lock = g.Set.Copy(resource.SMClock, before.Set), before.Lock
	}
}

// Settled records the outcome of an attempt: the settings that the driver reports now, and
// the clock lock if the driver has confirmed one.
func Settled(g *resource.Page, now resource.Settings) {
	for which, value := range now.All() {
		if which.Readable() {
			g.Set, g.Was = g.Set.With(which, value), g.Was.Without(which)
			if g.Undone.Is(which, value) {
				g.Undone = g.Undone.Without(which)
			}
		}
	}
	if mhz, set := now.Get(resource.SMClock); set && g.Lock != nil && g.Lock.MHz == mhz {
		g.Lock.Done, g.Undone = true, g.Undone.Without(resource.SMClock)
	}
}

// rebooted removes the record of settings that a reboot of the host has ended, and keeps what they were, for the holders. MIG
// mode outlives a reboot. If found is nil, the page stays as it is.
func rebooted(g *resource.Page, found *Found) {
	if found == nil || g.BootID == "" || found.BootID == "" || g.BootID == found.BootID {
		return
	}
	for which, set := range g.Set.All() {
		now := found.Settings
		if which.Lasting() && now.Has(which) && !now.Is(which, set) { // on some GPUs it does not
			g.Undone = g.Undone.With(which, set)
		}
		if !which.Readable() || which.Lasting() || now.Is(which, set) || now.Copy(which, g.Was) == now {
			continue
		}
		if base, known := g.Baseline.Get(which); known && !now.Is(which, base) {
			note(g, resource.Left{Setting: which.Words(), Value: Exact(now, which), Baseline: Exact(g.Baseline, which), Why: "the host was rebooted"}, resource.Holder{}, found)
		}
		g.Undone = g.Undone.With(which, set)
		g.Set, g.Was = g.Set.Without(which), g.Was.Without(which)
	}
	if g.Lock == nil || g.Lock.BootID != found.BootID {
		if g.Set.Has(resource.SMClock) {
			g.Undone = g.Undone.Copy(resource.SMClock, g.Set)
		}
		g.Set, g.Lock = g.Set.Without(resource.SMClock), nil
	}
	g.BootID = found.BootID
}
