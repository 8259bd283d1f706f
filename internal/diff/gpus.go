package diff

import (
	"cmp"
	"slices"

	"cosplay/internal/resource"
)

// gpuChanges pairs the GPUs that sessions want with those in hand.
func gpuChanges(desired resource.Desired, prior resource.Prior, live resource.Live, o Options) []GPUChange {
	var all []GPUChange
	use, placements := uses(desired, prior), prior.Placements()
	for _, want := range desired.GPUs {
		if g, ok := live.GPU(want.Host, want.UUID); ok {
			all = append(all, setUp(want, use[[2]string{want.Host, want.UUID}], g, prior, live, o))
		}
	}
	for _, held := range prior.GPUs {
		wanted := slices.ContainsFunc(desired.GPUs, func(d resource.DesiredGPU) bool { return d.Host == held.Host && d.UUID == held.UUID })
		switch {
		case wanted:
		case waits(held, desired):
			all = append(all, GPUChange{Host: held.Host, UUID: held.UUID, Action: NoOp})
		default:
			all = append(all, giveBack(held, prior, placements, live, o))
		}
	}
	slices.SortFunc(all, func(a, b GPUChange) int { return resource.CompareGPU(a.Host, a.UUID, b.Host, b.UUID) })
	return all
}

// waits reports whether sessions stay on a GPU that cannot be read well enough to plan
// with it: it is left as it is, with its settings, while they are there.
func waits(held resource.PriorGPU, desired resource.Desired) bool {
	return slices.ContainsFunc(desired.Sessions, func(s resource.Session) bool {
		return s.Slice.Host == held.Host && s.Slice.GPU == held.UUID
	})
}

// setUp brings a GPU to what its sessions need.
func setUp(want resource.DesiredGPU, by use, g resource.GPU, prior resource.Prior, live resource.Live, o Options) GPUChange {
	c := GPUChange{Host: want.Host, UUID: want.UUID, Action: NoOp}
	held, ours := prior.GPU(want.Host, want.UUID)
	book, inHand := live.Page(want.Host, want.UUID)
	switch {
	case ours:
		held = informed(held, book)
		if mw, asked := want.Settings.Get(resource.PowerLimit); held.AskedPowerMW == nil && !by.changed && asked && resource.RoundedPower(mw, g.PowerMW) {
			held.AskedPowerMW = &mw // a rebuilt state does not have it, and the same sessions ask for the same
		}
	case inHand: // by others: they know what it was like
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
	if ours && len(c.Fields) > 0 {
		c.Action = Update
	}
	return c
}

// informed adds to what the state knows of a GPU the clock lock that another
// project has set meanwhile, and has left to us: it stands until it is set anew.
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

// use is how sessions use a GPU.
type use struct {
	whole   bool // one wants it without MIG
	changed bool // they are not those that the state has there, or ask for another power
}

// uses are those of the GPUs, by host and UUID.
func uses(desired resource.Desired, prior resource.Prior) map[[2]string]use {
	all, wanted := map[[2]string]use{}, map[resource.Address]bool{}
	add := func(s resource.Slice, changed bool) {
		at := [2]string{s.Host, s.GPU}
		all[at] = use{whole: all[at].whole || s.Whole(), changed: all[at].changed || changed}
	}
	for i := range desired.Sessions {
		s := &desired.Sessions[i]
		was, made := prior.Session(s.Address)
		wanted[s.Address] = made && was.Slice == s.Slice
		add(s.Slice, !wanted[s.Address] || was.Target.PowerW != s.Target.PowerW || was.Fit.ClockMHz != s.Fit.ClockMHz)
	}
	for _, was := range prior.Sessions {
		if at := [2]string{was.Slice.Host, was.Slice.GPU}; !wanted[was.Address] {
			all[at] = use{whole: all[at].whole, changed: true}
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
	case why.Kind != "" && (!wanted || setting == resource.PowerLimit): // a limit that follows from the targets is always explained
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

// setUpClock decides about the one setting that cannot be read. Where the GPU is
// touched at all its lock is set again: it may have been lifted unseen.
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
	c.Fields = append(c.Fields, Field{Kind: FieldSMClock, From: c.clockNow(held, g), To: Clock{MHz: mhz}, Reason: reason})
}

func (c *GPUChange) clockNow(held resource.PriorGPU, g resource.GPU) Clock {
	if c.LockBefore {
		return Clock{MHz: g.SMClockMHz, As: ClockSeen}
	}
	return clockNow(held, c.LockLost)
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

// news picks the wanted settings that the GPU has already and that the state does not
// know yet: cosplay answers for them from now on as for those that it sets.
func news(want resource.Settings, g resource.GPU, known resource.Settings) resource.Settings {
	for setting, value := range want.All() {
		now, readable := g.Now(setting)
		had := readable && now == value && !known.Is(setting, value)
		if setting == resource.SMClock { // a lock is only known by having been set
			had = value == 0 && !known.Has(setting)
		}
		if !had {
			want = want.Without(setting)
		}
	}
	return want
}

// Baseline is what a GPU is like before cosplay touches it, without what its driver
// does not tell. A clock lock cannot be read: it is what the configuration tells, in MHz, or nothing; lockBefore
// says that there seems to be one all the same.
func Baseline(g resource.GPU, toldMHz int) (b resource.Settings, lockBefore bool) {
	for _, setting := range resource.AllSettings {
		if now, known := g.Now(setting); known {
			b = b.With(setting, now)
		}
	}
	if !g.MIGCapable { // a driver may hide the profiles while MIG mode is off
		b = b.Without(resource.MIGMode)
	}
	if toldMHz != 0 {
		b = b.With(resource.SMClock, toldMHz)
	}
	return b, toldMHz == 0 && g.LooksLocked()
}
