package diff

import (
	"slices"

	"cosplay/internal/resource"
)

// giveBack restores a GPU that no session needs any more: each setting only where
// its live value is still cosplay's, or unknown. A setting that cannot be restored
// keeps the GPU in the state and in the ledger, so that a later destroy can restore
// it, unless the user gives it up.
func giveBack(held resource.PriorGPU, prior resource.Prior, seats resource.Seats, live resource.Live, o Options) GPUChange {
	c := GPUChange{Host: held.Host, UUID: held.UUID, Action: Delete, GiveBack: true, Abandon: o.AbandonBaseline}
	book, inHand := live.Held(held.Host, held.UUID)
	us, holds := book.Holder(prior.Lineage)
	c.Take, c.Others = !holds && booked(live, held.Host), book.Others(prior.Lineage)
	g, ok := live.GPU(held.Host, held.UUID)
	if !ok { // nor is it left to others: cosplay's slices and settings may come back with it
		now, reason := Value(IsMissing), resource.Reason{Kind: resource.GPUMissing}
		if u, is := live.Unusable(held.Host, held.UUID); is {
			now, reason = Unanswered(u), resource.Reason{Kind: resource.GPUUnusable, Unusable: &u}
		}
		c.leave(FieldWholeGPU, now, nil, reason, o)
		return c
	}
	if len(c.Others) > 0 {
		c.Abandon = false
		c.Kept = append(c.Kept, Field{Kind: FieldSettings, From: IsAsSet, Reason: resource.Reason{Kind: resource.SharedByProjects}})
		return c
	}
	boot := sameBoot(prior, live, held.Host)
	if inHand { // whichever project set it
		if book.Leaving == "" { // else the ledger does not tell any more what is set
			held = informed(held, book)
		}
		held.Baseline, held.LockBefore, held.Applied = book.Baseline, book.LockBefore, stillSet(book.Set.With(held.Applied), book, g)
		lifted := held.Applied.ClockMHz == nil || *held.Applied.ClockMHz == 0
		held.ClockUnsure = held.ClockUnsure || boot && lifted && lockStays(book)
		if book.Unkept {
			held = forgotten(held, g)
		}
	}
	c.restorePower(held, g, boot, o)
	c.restoreClock(held, g, boot, o)
	c.restoreMIG(held, g, seats, o)
	c.restorePersistence(held, g, boot, o)
	c.leaveSlices(us, g, prior, o)
	if c.Action == NoOp && len(c.Fields) > 0 {
		c.Action = Update
	}
	return c
}

// forgotten treats the values of a GPU as set by cosplay: a project switched persistence
// mode off, after which the driver may have dropped any setting.
func forgotten(held resource.PriorGPU, g resource.GPU) resource.PriorGPU {
	held.Applied.Persistence = &g.Persistence
	if !g.Unread(resource.FeaturePower) {
		held.Applied.PowerMW = &g.PowerMW
	}
	held.ClockUnsure = held.ClockUnsure || held.Baseline.ClockMHz != nil && *held.Baseline.ClockMHz != 0
	return held
}

// stillSet is what cosplay has set, where a change that failed left the GPU with the
// value before it, or may have.
func stillSet(ours resource.Settings, book resource.Held, g resource.GPU) resource.Settings {
	was := book.Was
	if was.MIG != nil && (*was.MIG == g.MIG || g.Unread(resource.FeatureMIG)) {
		ours.MIG = was.MIG
	}
	if was.Persistence != nil && (*was.Persistence == g.Persistence || g.Unread(resource.FeaturePersistence)) {
		ours.Persistence = was.Persistence
	}
	if was.PowerMW != nil && (*was.PowerMW == g.PowerMW || g.Unread(resource.FeaturePower)) {
		ours.PowerMW = was.PowerMW
	}
	return ours
}

// Unrestored lists the GPUs that are kept because a setting that cosplay changed
// cannot be restored.
func (d Diff) Unrestored() []GPUChange {
	return slices.DeleteFunc(slices.Clone(d.GPUs), func(c GPUChange) bool {
		return !c.GiveBack || c.Abandon || !slices.ContainsFunc(c.Kept, func(f Field) bool { return f.Left })
	})
}

// leave notes what is not restored, and keeps the GPU unless it is given up.
func (c *GPUChange) leave(kind Kind, now, baseline Value, reason resource.Reason, o Options) {
	c.Kept = append(c.Kept, Field{Kind: kind, From: now, To: baseline, Reason: reason, Left: true})
	if !o.AbandonBaseline {
		c.Action = NoOp
	}
}

// restore notes one setting that is restored, or why it is not.
func (c *GPUChange) restore(kind Kind, from, to Value, still bool, ended resource.ReasonKind, o Options) bool {
	switch {
	case from == to:
		return false
	case still:
		c.Fields = append(c.Fields, Field{Kind: kind, From: from, To: to})
		return true
	case ended == resource.EndedByReboot:
		c.Kept = append(c.Kept, Field{Kind: kind, From: from, To: to, Reason: resource.Reason{Kind: ended}})
		return false
	}
	c.leave(kind, from, to, resource.Reason{Kind: ended}, o)
	return false
}

// since is what ends a setting that does not outlive a reboot.
func since(sameBoot bool) resource.ReasonKind {
	if sameBoot {
		return resource.ChangedByOthers
	}
	return resource.EndedByReboot
}

// liveNow is the live value of a setting, and whether it is still cosplay's. One that
// cannot be read is taken for what cosplay set.
func liveNow(g resource.GPU, f resource.Feature, live, ours Value) (now Value, stillOurs bool) {
	if g.Unread(f) {
		return ours, true
	}
	return live, live == ours
}

func (c *GPUChange) restorePower(held resource.PriorGPU, g resource.GPU, sameBoot bool, o Options) {
	was, ours := held.Baseline.PowerMW, held.Applied.PowerMW
	if was == nil || ours == nil {
		return
	}
	now, still := liveNow(g, resource.FeaturePower, Power(g.PowerMW), Power(*ours))
	if c.restore(FieldPowerLimit, now, Power(*was), still, since(sameBoot), o) {
		c.Settings.PowerMW = was
	}
}

// lockStays reports whether the ledger has a clock lock and does not know that the
// baseline's has replaced it.
func lockStays(book resource.Held) bool {
	base := 0
	if book.Baseline.ClockMHz != nil {
		base = *book.Baseline.ClockMHz
	}
	locked := book.Lock != nil || book.Set.ClockMHz != nil && *book.Set.ClockMHz != 0
	return locked && (book.Lock == nil || !book.Lock.Done || book.Lock.MHz != base)
}

func (c *GPUChange) restoreClock(held resource.PriorGPU, g resource.GPU, sameBoot bool, o Options) {
	ours := held.Applied.ClockMHz
	if (ours == nil || *ours == 0) && !held.ClockUnsure {
		return
	}
	to := 0
	if held.Baseline.ClockMHz != nil {
		to = *held.Baseline.ClockMHz
	}
	if held.LockBefore {
		c.Kept = append(c.Kept, Field{Kind: FieldSMClock, From: Clock{}, Reason: resource.Reason{Kind: resource.LockBefore}})
	}
	if !sameBoot && !held.ClockUnsure && to == 0 {
		return // the driver has forgotten the lock
	}
	// Where nothing shows a lock of another process, the lock is cosplay's or lifted:
	// to lift it again does no harm, and proves that it is.
	foreign := sameBoot && !held.ClockUnsure && otherLock(held, g, to)
	still := held.ClockUnsure || sameBoot && !foreign
	from := clockNow(held, lockLost(held, g, sameBoot))
	if foreign {
		from = lockNow(held, g)
		from.Read = 0
	}
	if c.restore(FieldSMClock, from, Clock{MHz: to}, still, since(sameBoot), o) {
		c.Settings.ClockMHz = &to
	}
}

// otherLock reports whether the SM clock, or a load that verify put on the GPU,
// shows a lock that is neither cosplay's nor the one to restore.
func otherLock(held resource.PriorGPU, g resource.GPU, to int) bool {
	if mhz := held.ClockRefutedMHz; mhz != 0 {
		return mhz != to && (to != 0 || mhz != g.Model.MaxClockMHz())
	}
	return g.LockState(*held.Applied.ClockMHz) == resource.LockLifted && (to != 0 || g.LockState(0) == resource.LockLifted)
}

// restoreMIG waits for slices that are not cosplay's.
func (c *GPUChange) restoreMIG(held resource.PriorGPU, g resource.GPU, seats resource.Seats, o Options) {
	was, ours := held.Baseline.MIG, held.Applied.MIG
	if was == nil || ours == nil {
		return
	}
	if !*was && g.MIG && *ours && len(Foreign(g, seats)) > 0 {
		c.leave(FieldMIGMode, Switch(true), Switch(false), resource.Reason{Kind: resource.ForeignSlices}, o)
		return
	}
	now, still := liveNow(g, resource.FeatureMIG, Switch(g.MIG), Switch(*ours))
	if c.restore(FieldMIGMode, now, Switch(*was), still, resource.ChangedByOthers, o) {
		c.Settings.MIG = was
	}
}

// keepsForeign says which value of another process the driver keeps only as long as
// persistence mode is on; "" for none.
func (c *GPUChange) keepsForeign() resource.ReasonKind {
	for _, f := range c.Kept {
		switch {
		case f.Left && f.Kind == FieldPowerLimit:
			return resource.KeepsForeignPower
		case f.Left && f.Kind == FieldSMClock:
			return resource.KeepsForeignClock
		}
	}
	return ""
}

func (c *GPUChange) restorePersistence(held resource.PriorGPU, g resource.GPU, sameBoot bool, o Options) {
	was, ours := held.Baseline.Persistence, held.Applied.Persistence
	if was == nil || ours == nil {
		return
	}
	if kept := c.keepsForeign(); kept != "" && g.Persistence && *ours && !*was && !o.AbandonBaseline {
		c.leave(FieldPersistenceMode, Switch(true), Switch(false), resource.Reason{Kind: kept}, o)
		return
	}
	now, still := liveNow(g, resource.FeaturePersistence, Switch(g.Persistence), Switch(*ours))
	if c.restore(FieldPersistenceMode, now, Switch(*was), still, since(sameBoot), o) {
		c.Settings.Persistence = was
	}
}

// leaveSlices notes slices of this project's that no session has: the last holder
// is released only when they are removed.
func (c *GPUChange) leaveSlices(us resource.Holder, g resource.GPU, prior resource.Prior, o Options) {
	for _, made := range us.Slices {
		i := slices.IndexFunc(g.Slices, func(l resource.LiveSlice) bool {
			return !made.Imported && made.UUID != "" && made.Match(l) != resource.OtherSlice
		})
		known := slices.ContainsFunc(prior.Sessions, func(s resource.PriorSession) bool {
			return i >= 0 && s.Slice.Host == c.Host && s.Slice.GPU == c.UUID && s.Handle != nil && is(g.Slices[i], &s)
		})
		if i >= 0 && !known {
			c.leave(FieldSlice, Slice(made.Slice), nil, resource.Reason{Kind: resource.SliceOfNoSession}, o)
		}
	}
}
