package diff

import (
	"fmt"
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
		now, why := "gone", "it is missing"
		if u, is := live.Unusable(held.Host, held.UUID); is {
			now, why = "unusable", u.String()
		}
		_, fix := live.NoGPU(held.Host, held.UUID)
		c.leave("GPU", now, why+"; its baseline is kept until it can be restored. Fix: "+fix+", then run cosplay destroy again", o)
		return c
	}
	if len(c.Others) > 0 {
		c.Abandon = false
		c.Kept = append(c.Kept, Field{Name: "settings", From: "as set", To: "as set", Reason: "another project holds the GPU too; the last project to leave restores the baseline"})
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
func (c *GPUChange) leave(name, now, reason string, o Options) {
	c.Kept = append(c.Kept, Field{Name: name, From: now, To: now, Reason: reason, Left: true})
	if !o.AbandonBaseline {
		c.Action = NoOp
	}
}

// ended is whose value a setting has instead of cosplay's.
type ended string

const (
	rebootEnded ended = "the host was rebooted since, and the driver has its own value"
	otherEnded  ended = "another process changed it since"
)

// restore notes one setting that is restored, or why it is not.
func (c *GPUChange) restore(name, from, to string, still bool, by ended, o Options) bool {
	switch {
	case from == to:
		return false
	case still:
		c.Fields = append(c.Fields, Field{Name: name, From: from, To: to})
		return true
	case by == rebootEnded:
		c.Kept = append(c.Kept, Field{Name: name, From: from, To: from, Reason: string(by)})
		return false
	}
	c.leave(name, from, fmt.Sprintf("%s, so that its baseline, %s, is not restored", by, to), o)
	return false
}

// since is what ends a setting that does not outlive a reboot.
func since(sameBoot bool) ended {
	if sameBoot {
		return otherEnded
	}
	return rebootEnded
}

// liveNow is the live value of a setting, in words, and whether it is still cosplay's. One
// that cannot be read is taken for what cosplay set.
func liveNow(g resource.GPU, f resource.Feature, live, ours string) (text string, stillOurs bool) {
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
	now, still := liveNow(g, resource.FeaturePower, resource.Watts(g.PowerMW), resource.Watts(*ours))
	if c.restore("power limit", now, resource.Watts(*was), still, since(sameBoot), o) {
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
		c.Kept = append(c.Kept, Field{Name: "SM clock", From: resource.Clock(0), To: resource.Clock(0), Reason: "a lock that seems to have been there before cannot be read, and so not be brought back"})
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
		from = lockText(held, g)
	}
	if c.restore("SM clock", from, resource.Clock(to), still, since(sameBoot), o) {
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
		c.leave("MIG mode", "on", "foreign slices are on it; run cosplay destroy again when they are removed", o)
		return
	}
	now, still := liveNow(g, resource.FeatureMIG, resource.OnOff(g.MIG), resource.OnOff(*ours))
	if c.restore("MIG mode", now, resource.OnOff(*was), still, otherEnded, o) {
		c.Settings.MIG = was
	}
}

// foreignValue names a value of another process that the driver keeps only as long as
// persistence mode is on.
func (c *GPUChange) foreignValue() string {
	for _, f := range c.Kept {
		if f.Left && (f.Name == "power limit" || f.Name == "SM clock") {
			return f.Name
		}
	}
	return ""
}

func (c *GPUChange) restorePersistence(held resource.PriorGPU, g resource.GPU, sameBoot bool, o Options) {
	was, ours := held.Baseline.Persistence, held.Applied.Persistence
	if was == nil || ours == nil {
		return
	}
	if kept := c.foreignValue(); kept != "" && g.Persistence && *ours && !*was && !o.AbandonBaseline {
		c.leave("persistence mode", "on", "without it the driver would forget the "+kept+" that another process set", o)
		return
	}
	now, still := liveNow(g, resource.FeaturePersistence, resource.OnOff(g.Persistence), resource.OnOff(*ours))
	if c.restore("persistence mode", now, resource.OnOff(*was), still, since(sameBoot), o) {
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
			c.leave("slice", made.Slice.String(), "this project made it, and no session has it: nvidia-smi mig -dci and -dgi remove it", o)
		}
	}
}
