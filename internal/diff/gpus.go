package diff

import (
	"cmp"
	"slices"

	"cosplay/internal/resource"
)

// gpuChanges pairs the GPUs that sessions need with those that the project has acquired.
func gpuChanges(desired resource.Desired, prior resource.Prior, live resource.Live, o Options) []GPUChange {
	var all []GPUChange
	used, placements := uses(desired, prior), prior.Placements()
	wanted, taken := map[resource.GPUKey]bool{}, map[resource.GPUKey]bool{}
	for i := range desired.Sessions {
		for _, gpu := range desired.Sessions[i].On() {
			taken[gpu] = true
		}
	}
	for _, want := range desired.GPUs {
		wanted[want.Key()] = true
		if g, ok := live.GPU(want.Host, want.UUID); ok {
			all = append(all, setUp(want, used[want.Key()], g, prior, live, o))
		}
	}
	for _, held := range prior.GPUs {
		switch {
		case wanted[held.Key()], live.Unreachable(held.Host):
		case taken[held.Key()]: // but the GPU cannot be read well enough to plan with it: it keeps its settings
			all = append(all, GPUChange{Host: held.Host, UUID: held.UUID, Action: NoOp})
		default:
			all = append(all, giveBack(held, prior, placements, live, o))
		}
	}
	slices.SortFunc(all, func(a, b GPUChange) int { return a.Key().Compare(b.Key()) })
	return all
}

// setUp brings a GPU to what its sessions need.
func setUp(want resource.DesiredGPU, by use, g resource.GPU, prior resource.Prior, live resource.Live, o Options) GPUChange {
	c := GPUChange{Host: want.Host, UUID: want.UUID, Action: NoOp}
	held, ours := prior.GPU(want.Host, want.UUID)
	book, inHand := live.Page(want.Host, want.UUID)
	switch {
	case ours:
		held = informed(held, book)
		mw, asked := want.Settings.Get(resource.PowerLimit)
		if held.AskedPowerMW == nil && !by.changed && asked && resource.RoundedPower(mw, g.PowerMW) {
			held.AskedPowerMW = &mw // a rebuilt state lacks it, and the same sessions request the same limit
		}
	case inHand: // by other projects: the ledger has its baseline
		c.Action, c.Baseline, c.LockBefore = Create, &book.Baseline, book.LockBefore
	default:
		stated := cmp.Or(o.AdminClockMHz[want.UUID], o.BaselineClockMHz[want.Host])
		c.Action = Create
		baseline, locked := Baseline(g, stated)
		c.Baseline, c.LockBefore = &baseline, locked
	}
	us, known := book.Holder(prior.Lineage)
	c.Others, c.Whole = book.Others(prior.Lineage), by.whole
	c.Take = (!known || book.Leaving != "" || us.Whole != c.Whole) && booked(live, want.Host)
	c.LockLost = ours && lockLost(held, g, sameBoot(prior, live, want.Host))
	for _, setting := range resource.SettingOrder {
		if setting == resource.SMClock {
			c.setUpClock(want, g, held)
		} else {
			c.setUp(setting, want, g, held)
		}
	}
	c.Holds = news(want.Settings, g, held.Applied)
	c.setUpMPS(want.Daemons, held.Daemons, live)
	if ours && len(c.Fields) > 0 {
		c.Action = Update
	}
	return c
}

// informed adds to a GPU of the state the clock lock that another project has set since, and has left: it holds until
// it is set again.
func informed(held resource.PriorGPU, book resource.Page) resource.PriorGPU {
	if mhz, set := book.Set.Get(resource.SMClock); set && mhz != held.Applied.Value(resource.SMClock) {
		held.Applied, held.ClockUnsure = held.Applied.With(resource.SMClock, mhz), true
	}
	return held
}

// booked reports whether a host keeps a ledger.
func booked(live resource.Live, host string) bool {
	h, _ := live.Host(host)
	return !h.Unbooked
}

type use struct {
	whole   bool // a session needs it without MIG
	changed bool // the sessions are not those of the state, or request another power
}

// uses are those of the GPUs, by host and UUID.
func uses(desired resource.Desired, prior resource.Prior) map[resource.GPUKey]use {
	all, wanted := map[resource.GPUKey]use{}, map[resource.Address]bool{}
	add := func(s resource.Session, changed bool) {
		for _, slice := range s.Slices() {
			at := all[slice.On()]
			all[slice.On()] = use{whole: at.whole || slice.Whole(), changed: at.changed || changed}
		}
	}
	for i := range desired.Sessions {
		s := &desired.Sessions[i]
		was, made := prior.Session(s.Address)
		wanted[s.Address] = made && was.SameSlices(*s)
		add(*s, !wanted[s.Address] || was.Target.PowerW != s.Target.PowerW || was.Fit.ClockMHz != s.Fit.ClockMHz)
	}
	for _, was := range prior.Sessions {
		for _, at := range was.On() {
			if !wanted[was.Address] {
				all[at] = use{whole: all[at].whole, changed: true}
			}
		}
	}
	return all
}

// setUp decides about a setting that can be read.
func (c *GPUChange) setUp(setting resource.Setting, want resource.DesiredGPU, g resource.GPU, held resource.PriorGPU) {
	value, wanted := want.Settings.Get(setting)
	now, why := nowOf(setting, g), want.Why[setting]
	switch {
	case wanted && now != asWanted(setting, value) && !(setting == resource.PowerLimit && rounded(value, g, held)):
		c.Settings = c.Settings.With(setting, value)
		c.Fields = append(c.Fields, Field{Kind: SettingKind(setting), From: now, To: asWanted(setting, value), Reason: why})
	case why.Kind != "" && (!wanted || setting == resource.PowerLimit): // a limit from the targets always has its reason
		c.Kept = append(c.Kept, Field{Kind: SettingKind(setting), From: now, Reason: why})
	}
}

// rounded reports whether the GPU has the power limit to which the driver rounded the wanted one.
func rounded(mw int, g resource.GPU, held resource.PriorGPU) bool {
	return held.AskedPowerMW != nil && *held.AskedPowerMW == mw && held.Applied.Is(resource.PowerLimit, g.PowerMW)
}

// nowOf is a setting as the GPU shows it.
func nowOf(setting resource.Setting, g resource.GPU) Value {
	if setting == resource.MIGMode {
		return MIG{g.MIG, g.MIGPending}
	}
	now, _ := g.Now(setting)
	return SettingValue(setting, now)
}

// asWanted is a setting as nowOf gives it where it has a value.
func asWanted(setting resource.Setting, value int) Value {
	if setting == resource.MIGMode {
		return MIG{value == resource.On, value == resource.On}
	}
	return SettingValue(setting, value)
}

// setUpClock decides about the setting that cannot be read. If the GPU changes at all, its lock is set again: it may
// have been lifted without a sign.
func (c *GPUChange) setUpClock(want resource.DesiredGPU, g resource.GPU, held resource.PriorGPU) {
	mhz, wanted := want.Settings.Get(resource.SMClock)
	reason := want.Why[resource.SMClock]
	if !wanted {
		if reason.Kind != "" {
			c.Kept = append(c.Kept, Field{Kind: FieldSMClock, From: Clock{MHz: g.SMClockMHz}, Reason: reason})
		}
		return
	}
	applied := held.Applied.Value(resource.SMClock)
	switch {
	case held.ClockUnsure, c.LockLost:
	case applied == 0 && mhz == 0:
		return
	case applied == mhz:
		if len(c.Fields) == 0 {
			return
		}
		reason = resource.Reason{Kind: resource.SentAgain}
	}
	c.Settings = c.Settings.With(resource.SMClock, mhz)
	now := clockNow(held, c.LockLost)
	if c.LockBefore {
		now = Clock{MHz: g.SMClockMHz, As: ClockSeen}
	}
	c.Fields = append(c.Fields, Field{Kind: FieldSMClock, From: now, To: Clock{MHz: mhz}, Reason: reason})
}

// clockNow is the lock as far as it is known.
func clockNow(held resource.PriorGPU, lost bool) Clock {
	applied := held.Applied.Value(resource.SMClock)
	switch {
	case held.ClockUnsure:
		return Clock{As: ClockUnknown}
	case applied == 0:
		return Clock{}
	case lost:
		return Clock{As: ClockLifted}
	}
	return Clock{MHz: applied}
}

// news are the desired settings that the GPU has already and that the state does not have yet: cosplay keeps them
// from now on like those that it sets.
func news(want resource.Settings, g resource.GPU, known resource.Settings) resource.Settings {
	for setting, value := range want.All() {
		now, readable := g.Now(setting)
		had := readable && now == value && !known.Is(setting, value)
		if setting == resource.SMClock { // cosplay knows of a lock only if it set one
			had = value == 0 && !known.Has(setting)
		}
		if !had {
			want = want.Without(setting)
		}
	}
	return want
}

// Baseline is what a GPU is like before cosplay changes it, without what its driver does not report. A clock lock
// cannot be read: it is the stated one, in MHz, 0 for none. lockBefore says that there seems to be a lock although
// none is stated.
func Baseline(g resource.GPU, statedMHz int) (b resource.Settings, lockBefore bool) {
	for _, setting := range resource.AllSettings {
		if now, known := g.Now(setting); known {
			b = b.With(setting, now)
		}
	}
	if !g.MIGCapable { // a driver may hide the profiles while MIG mode is off
		b = b.Without(resource.MIGMode)
	}
	if statedMHz != 0 {
		b = b.With(resource.SMClock, statedMHz)
	}
	return b, statedMHz == 0 && g.LooksLocked()
}
