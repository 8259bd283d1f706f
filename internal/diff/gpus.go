package diff

import (
	"cmp"
	"slices"

	"cosplay/internal/resource"
)

// gpuChanges pairs the GPUs that sessions want with those in hand.
func gpuChanges(desired resource.Desired, prior resource.Prior, live resource.Live, o Options) []GPUChange {
	var all []GPUChange
	use, seats := uses(desired, prior), prior.Seats()
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
			all = append(all, giveBack(held, prior, seats, live, o))
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
	book, inHand := live.Held(want.Host, want.UUID)
	switch {
	case ours:
		held = informed(held, book)
		if held.AskedPowerMW == nil && !by.changed && want.Settings.PowerMW != nil && resource.RoundedPower(*want.Settings.PowerMW, g.PowerMW) {
			held.AskedPowerMW = want.Settings.PowerMW // a rebuilt state does not have it, and the same sessions ask for the same
		}
	case inHand: // by others: they know what it was like
		c.Action, c.Baseline, c.LockBefore = Create, &book.Baseline, book.LockBefore
	default:
		stated := cmp.Or(o.AdminClockMHz[want.UUID], o.BaselineClockMHz[want.Host])
		c.Action = Create
		c.Baseline, c.LockBefore = Baseline(g, stated)
	}
	us, known := book.Holder(prior.Lineage)
	c.Others, c.Whole = book.Others(prior.Lineage), by.whole
	c.Take = (!known || book.Leaving != "" || us.Whole != c.Whole) && booked(live, want.Host)
	c.LockLost = ours && lockLost(held, g, sameBoot(prior, live, want.Host))
	c.setUpPersistence(want, g)
	c.setUpMIG(want, g)
	c.setUpPower(want, g, held)
	c.setUpClock(want, g, held)
	c.Holds = news(holds(want.Settings, g), held.Applied)
	if ours && len(c.Fields) > 0 {
		c.Action = Update
	}
	return c
}

// informed adds to what the state knows of a GPU the clock lock that another
// project has set meanwhile, and has left to us: it stands until it is set anew.
func informed(held resource.PriorGPU, book resource.Held) resource.PriorGPU {
	set, known := book.Set.ClockMHz, 0
	if held.Applied.ClockMHz != nil {
		known = *held.Applied.ClockMHz
	}
	if set != nil && *set != known {
		held.Applied.ClockMHz, held.ClockUnsure = set, true
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

func (c *GPUChange) setUpPersistence(want resource.DesiredGPU, g resource.GPU) {
	if on := want.Settings.Persistence; on != nil && *on != g.Persistence {
		c.Settings.Persistence = on
		c.Fields = append(c.Fields, Field{Kind: FieldPersistenceMode, From: Switch(g.Persistence), To: Switch(*on), Reason: resource.Reason{Kind: resource.KeepsSettings}})
	}
}

func (c *GPUChange) setUpMIG(want resource.DesiredGPU, g resource.GPU) {
	if on := want.Settings.MIG; on != nil && (*on != g.MIG || *on != g.MIGPending) {
		c.Settings.MIG = on
		c.Fields = append(c.Fields, Field{Kind: FieldMIGMode, From: MIG{g.MIG, g.MIGPending}, To: MIG{*on, *on}, Reason: want.Why.MIG})
	}
}

func (c *GPUChange) setUpPower(want resource.DesiredGPU, g resource.GPU, held resource.PriorGPU) {
	mw := want.Settings.PowerMW
	rounded := same(mw, held.AskedPowerMW) && same(&g.PowerMW, held.Applied.PowerMW)
	if mw != nil && *mw != g.PowerMW && !rounded {
		c.Settings.PowerMW = mw
		c.Fields = append(c.Fields, Field{Kind: FieldPowerLimit, From: Power(g.PowerMW), To: Power(*mw), Reason: want.Why.Power})
	} else if want.Why.Power.Kind != "" {
		c.Kept = append(c.Kept, Field{Kind: FieldPowerLimit, From: Power(g.PowerMW), Reason: want.Why.Power})
	}
}

// setUpClock decides about the one setting that cannot be read. Where the GPU is
// touched at all its lock is set again: it may have been lifted unseen.
func (c *GPUChange) setUpClock(want resource.DesiredGPU, g resource.GPU, held resource.PriorGPU) {
	mhz, applied := want.Settings.ClockMHz, held.Applied.ClockMHz
	if mhz == nil {
		if want.Why.Clock.Kind != "" {
			c.Kept = append(c.Kept, Field{Kind: FieldSMClock, From: Clock{MHz: g.SMClockMHz}, Reason: want.Why.Clock})
		}
		return
	}
	reason := want.Why.Clock
	switch {
	case held.ClockUnsure, c.LockLost:
	case applied == nil || *applied == 0:
		if *mhz == 0 {
			return
		}
	case *applied == *mhz:
		if len(c.Fields) == 0 {
			return
		}
		reason = resource.Reason{Kind: resource.SentAgain}
	}
	c.Settings.ClockMHz = mhz
	c.Fields = append(c.Fields, Field{Kind: FieldSMClock, From: c.clockNow(held, g), To: Clock{MHz: *mhz}, Reason: reason})
}

func (c *GPUChange) clockNow(held resource.PriorGPU, g resource.GPU) Clock {
	if c.LockBefore {
		return Clock{MHz: g.SMClockMHz, As: ClockSeen}
	}
	return clockNow(held, c.LockLost)
}

// clockNow is the lock as far as it is known.
func clockNow(held resource.PriorGPU, lost bool) Clock {
	applied := held.Applied.ClockMHz
	switch {
	case held.ClockUnsure:
		return Clock{As: ClockUnknown}
	case applied == nil || *applied == 0:
		return Clock{}
	case lost:
		return Clock{As: ClockLifted}
	}
	return Clock{MHz: *applied}
}

// holds picks the wanted settings that the GPU has already: cosplay answers for
// them from now on as for those that it sets.
func holds(want resource.Settings, g resource.GPU) resource.Settings {
	if want.MIG != nil && *want.MIG != g.MIG {
		want.MIG = nil
	}
	if want.Persistence != nil && *want.Persistence != g.Persistence {
		want.Persistence = nil
	}
	if want.PowerMW != nil && *want.PowerMW != g.PowerMW {
		want.PowerMW = nil
	}
	if want.ClockMHz != nil && *want.ClockMHz != 0 {
		want.ClockMHz = nil
	}
	return want
}

// news picks the settings that the state does not know yet.
func news(now, known resource.Settings) resource.Settings {
	if same(now.MIG, known.MIG) {
		now.MIG = nil
	}
	if same(now.Persistence, known.Persistence) {
		now.Persistence = nil
	}
	if same(now.PowerMW, known.PowerMW) {
		now.PowerMW = nil
	}
	if known.ClockMHz != nil { // a lock is only ever known by having been set
		now.ClockMHz = nil
	}
	return now
}

func same[T comparable](a, b *T) bool { return a != nil && b != nil && *a == *b }

// Baseline is what a GPU is like before cosplay touches it, without what its driver
// does not tell. A clock lock cannot be read: it is what the configuration tells, in MHz, or nothing; lockBefore
// says that there seems to be one all the same.
func Baseline(g resource.GPU, toldMHz int) (b *resource.Settings, lockBefore bool) {
	b = &resource.Settings{}
	if !g.Unread(resource.FeaturePersistence) {
		b.Persistence = &g.Persistence
	}
	if !g.Unread(resource.FeaturePower) {
		b.PowerMW = &g.PowerMW
	}
	if g.MIGCapable && !g.Unread(resource.FeatureMIG) { // a driver may hide the profiles while MIG mode is off
		b.MIG = &g.MIG
	}
	if toldMHz != 0 {
		b.ClockMHz = &toldMHz
	}
	return b, toldMHz == 0 && g.LooksLocked()
}
