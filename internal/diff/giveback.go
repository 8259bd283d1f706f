package diff

import (
	"slices"

	"cosplay/internal/resource"
)

// giveBack restores a GPU that no session needs any more: each setting only where its live value is still cosplay's,
// or unknown. A setting that cannot be restored keeps the GPU in the state and in the ledger, so that a later destroy
// can restore it, unless the user gives it up.
func giveBack(held resource.PriorGPU, prior resource.Prior, placements resource.Placements, live resource.Live, o Options) GPUChange {
	c := GPUChange{Host: held.Host, UUID: held.UUID, Action: Delete, GiveBack: true, Abandon: o.AbandonBaseline}
	book, inHand := live.Page(held.Host, held.UUID)
	us, holds := book.Holder(prior.Lineage)
	c.Take, c.Others = !holds && booked(live, held.Host), book.Binding(prior.Lineage)
	c.setUpMPS(resource.Daemons{}, held.Daemons, live)
	g, ok := live.GPU(held.Host, held.UUID)
	if !ok { // not released to others, either: cosplay's slices and settings may come back with it
		now, reason := noGPU(held.Host, held.UUID, live)
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
		if book.Leaving == "" { // else the ledger does not record any more what is set
			held = informed(held, book)
		}
		held.Baseline, held.LockBefore = book.Baseline, book.LockBefore
		held.Applied = stillSet(held.Applied.Over(book.Set), book, g)
		held.ClockUnsure = held.ClockUnsure || boot && held.Applied.Value(resource.SMClock) == 0 && lockStays(book)
		if book.Unkept {
			held = forgotten(held, g)
		}
	}
	for _, setting := range slices.Backward(resource.SettingOrder[:]) {
		if setting == resource.SMClock {
			c.restoreClock(held, g, boot, o)
		} else {
			c.restore(setting, held, g, boot, len(Foreign(g, placements)) > 0, o)
		}
	}
	c.leaveSlices(us, g, placements.On(g), o)
	if c.Action == NoOp && len(c.Fields) > 0 {
		c.Action = Update
	}
	return c
}

// forgotten treats the values of a GPU as set by cosplay: a project switched persistence
// mode off, after which the driver may have dropped any setting.
func forgotten(held resource.PriorGPU, g resource.GPU) resource.PriorGPU {
	held.Applied = held.Applied.With(resource.PersistenceMode, resource.Bit(g.Persistence))
	for _, setting := range resource.AllSettings {
		if now, known := g.Now(setting); known && setting.Forgotten() {
			held.Applied = held.Applied.With(setting, now)
		}
	}
	held.ClockUnsure = held.ClockUnsure || held.Baseline.Value(resource.SMClock) != 0
	return held
}

// stillSet is what cosplay has set. A change that failed may have left the GPU with the value before it.
func stillSet(ours resource.Settings, book resource.Page, g resource.GPU) resource.Settings {
	for setting, was := range book.Was.All() {
		if now, known := g.Now(setting); now == was || !known {
			ours = ours.With(setting, was)
		}
	}
	return ours
}

// Unrestored lists the GPUs that are kept because a setting that cosplay changed cannot be restored.
func (d Diff) Unrestored() []GPUChange {
	return slices.DeleteFunc(slices.Clone(d.GPUs), func(c GPUChange) bool {
		return !c.GiveBack || c.Abandon || !slices.ContainsFunc(c.Kept, func(f Field) bool { return f.Left })
	})
}

// leave records what is not restored, and keeps the GPU unless it is given up.
func (c *GPUChange) leave(kind Kind, now, baseline Value, reason resource.Reason, o Options) {
	c.Kept = append(c.Kept, Field{Kind: kind, From: now, To: baseline, Reason: reason, Left: true})
	if !o.AbandonBaseline {
		c.Action = NoOp
	}
}

// settle records that a setting gets its baseline, or why it does not. still says that it has cosplay's value.
func (c *GPUChange) settle(setting resource.Setting, from Value, baseline int, still bool, ended resource.ReasonKind, o Options) {
	kind, to := SettingKind(setting), SettingValue(setting, baseline)
	switch {
	case from == to:
	case still:
		c.Fields = append(c.Fields, Field{Kind: kind, From: from, To: to})
		c.Settings = c.Settings.With(setting, baseline)
	case ended == resource.EndedByReboot:
		c.Kept = append(c.Kept, Field{Kind: kind, From: from, To: to, Reason: resource.Reason{Kind: ended}})
	default:
		c.leave(kind, from, to, resource.Reason{Kind: ended}, o)
	}
}

// restore restores a setting that can be read. One that the driver does not report any more is assumed to have
// cosplay's value.
func (c *GPUChange) restore(setting resource.Setting, held resource.PriorGPU, g resource.GPU, sameBoot, foreignSlices bool, o Options) {
	was, known := held.Baseline.Get(setting)
	ours, set := held.Applied.Get(setting)
	if !known || !set {
		return
	}
	now, readable := g.Now(setting)
	if why := c.needed(setting, foreignSlices, o); why.Kind != "" && now == resource.On && ours == resource.On && was == resource.Off {
		c.leave(SettingKind(setting), Switch(true), Switch(false), why, o)
		return
	}
	if !readable {
		now = ours
	}
	c.settle(setting, SettingValue(setting, now), was, now == ours, since(setting, sameBoot), o)
}

// needed says why a mode that cosplay switched on has to stay on; no reason if it does not.
func (c *GPUChange) needed(setting resource.Setting, foreignSlices bool, o Options) resource.Reason {
	switch {
	case setting == resource.MIGMode && foreignSlices:
		return resource.Reason{Kind: resource.ForeignSlices}
	case setting == resource.PersistenceMode && !o.AbandonBaseline:
		return c.keepsForeign()
	}
	return resource.Reason{}
}

// since is what ends a setting: a reboot ends it where it does not outlive one.
func since(setting resource.Setting, sameBoot bool) resource.ReasonKind {
	if sameBoot || setting.Lasting() {
		return resource.ChangedByOthers
	}
	return resource.EndedByReboot
}

// lockStays reports whether the ledger has a clock lock and does not know that the baseline's has replaced it.
func lockStays(book resource.Page) bool {
	locked := book.Lock != nil || book.Set.Value(resource.SMClock) != 0
	return locked && (book.Lock == nil || !book.Lock.Done || book.Lock.MHz != book.Baseline.Value(resource.SMClock))
}

func (c *GPUChange) restoreClock(held resource.PriorGPU, g resource.GPU, sameBoot bool, o Options) {
	if held.Applied.Value(resource.SMClock) == 0 && !held.ClockUnsure {
		return
	}
	to := held.Baseline.Value(resource.SMClock)
	if held.LockBefore {
		c.Kept = append(c.Kept, Field{Kind: FieldSMClock, From: Clock{}, Reason: resource.Reason{Kind: resource.LockBefore}})
	}
	if !sameBoot && !held.ClockUnsure && to == 0 {
		return // the driver has forgotten the lock
	}
	// If nothing shows a lock of another process, the lock is cosplay's or lifted. Lifting it again does no harm, and
	// proves that it is lifted.
	foreign := sameBoot && !held.ClockUnsure && otherLock(held, g, to)
	still := held.ClockUnsure || sameBoot && !foreign
	from := clockNow(held, lockLost(held, g, sameBoot))
	if foreign {
		from = lockNow(held, g)
		from.Read = 0
	}
	c.settle(resource.SMClock, from, to, still, since(resource.SMClock, sameBoot), o)
}

// otherLock reports whether the SM clock, or a load that verify put on the GPU,
// shows a lock that is neither cosplay's nor the one to restore.
func otherLock(held resource.PriorGPU, g resource.GPU, to int) bool {
	if mhz := held.ClockRefutedMHz; mhz != 0 {
		return mhz != to && (to != 0 || mhz != g.Model.MaxClockMHz())
	}
	return g.RefutesLock(held.Applied.Value(resource.SMClock)) && (to != 0 || g.RefutesLock(0))
}

// keepsForeign says which value of another process the driver keeps only as long as
// persistence mode is on; no reason if there is none.
func (c *GPUChange) keepsForeign() resource.Reason {
	for _, f := range c.Kept {
		if setting, is := resource.SettingNamed(string(f.Kind)); is && f.Left && setting.Forgotten() {
			return resource.Reason{Kind: resource.KeepsForeign, Setting: &setting}
		}
	}
	return resource.Reason{}
}

// leaveSlices records slices of this project that no session has: the last holder is released only when they are
// removed.
func (c *GPUChange) leaveSlices(us resource.Holder, g resource.GPU, sessions []*resource.PriorSession, o Options) {
	for _, made := range us.Slices {
		i := slices.IndexFunc(g.Slices, func(l resource.LiveSlice) bool {
			return !made.Imported && made.UUID != "" && made.Match(l) != resource.OtherSlice
		})
		known := slices.ContainsFunc(sessions, func(s *resource.PriorSession) bool {
			return i >= 0 && s.Slice.On() == c.Key() && s.Handle != nil && is(g.Slices[i], s)
		})
		if i >= 0 && !known {
			c.leave(FieldSlice, Slice(made.Slice), nil, resource.Reason{Kind: resource.SliceOfNoSession}, o)
		}
	}
}
