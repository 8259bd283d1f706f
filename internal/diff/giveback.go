package diff

import "cosplay/internal/resource"

// giveBack restores a GPU that nobody needs any more: each setting only where
// its live value is still ours, or unknown. What cannot be restored yet keeps
// the GPU in the state, so that a later destroy can.
func giveBack(held resource.PriorGPU, prior resource.Prior, seats resource.Seats, live resource.Live) GPUChange {
	c := GPUChange{Host: held.Host, UUID: held.UUID, Action: Delete, GiveBack: true}
	book, inHand := live.Held(held.Host, held.UUID)
	_, holds := book.Holder(prior.Lineage)
	c.Take, c.Others = !holds && booked(live, held.Host), book.Others(prior.Lineage)
	g, ok := live.GPU(held.Host, held.UUID)
	if !ok { // nor is it left to others: what we have there may come back with it
		c.Action = NoOp
		c.Kept = append(c.Kept, Field{Name: "GPU", From: "gone", To: "gone", Reason: "it is not there; its baseline is kept until it is"})
		return c
	}
	if len(c.Others) > 0 {
		c.Kept = append(c.Kept, Field{Name: "settings", From: "as set", To: "as set", Reason: "another project holds the GPU too; the last one puts it back"})
		return c
	}
	if inHand { // whoever set it
		if book.Leaving == "" { // else the book tells no longer what is set
			held = informed(held, book)
		}
		held.Baseline, held.LockBefore, held.Applied = book.Baseline, book.LockBefore, book.Set.With(held.Applied)
	}
	c.restorePower(held, g)
	c.restoreClock(held, g, sameBoot(prior, live, held.Host))
	waits := c.restoreMIG(held, g, seats)
	c.restorePersistence(held, g)
	if waits {
		c.Action = NoOp
		if len(c.Fields) > 0 {
			c.Action = Update
		}
	}
	return c
}

// restore notes one setting that goes back, or why it does not.
func (c *GPUChange) restore(name, from, to string, stillOurs bool) bool {
	switch {
	case from == to:
		return false
	case !stillOurs:
		c.Kept = append(c.Kept, Field{Name: name, From: from, To: from, Reason: "changed since, by somebody or by a reboot"})
		return false
	}
	c.Fields = append(c.Fields, Field{Name: name, From: from, To: to})
	return true
}

func (c *GPUChange) restorePower(held resource.PriorGPU, g resource.GPU) {
	was, ours := held.Baseline.PowerMW, held.Applied.PowerMW
	if was != nil && ours != nil && c.restore("power limit", resource.Watts(g.PowerMW), resource.Watts(*was), g.PowerMW == *ours) {
		c.Settings.PowerMW = was
	}
}

func (c *GPUChange) restoreClock(held resource.PriorGPU, g resource.GPU, sameBoot bool) {
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
	lost := !held.ClockUnsure && lockLost(held, g, sameBoot)
	// A lock that is gone is as good as lifted, unless another user has set one.
	other := g.LockState(0) != resource.LockUnknown
	if held.ClockRefutedMHz != 0 {
		other = held.ClockRefutedMHz != g.Model.MaxClockMHz()
	}
	if lost && to == 0 && !other {
		return
	}
	if c.restore("SM clock", clockNow(held, lost), resource.Clock(to), !lost) {
		c.Settings.ClockMHz = &to
	}
}

// restoreMIG reports whether MIG mode has to wait for somebody else's slices.
func (c *GPUChange) restoreMIG(held resource.PriorGPU, g resource.GPU, seats resource.Seats) (waits bool) {
	was, ours := held.Baseline.MIG, held.Applied.MIG
	if was == nil || ours == nil {
		return false
	}
	if !*was && g.MIG && *ours && len(Foreign(g, seats)) > 0 {
		c.Kept = append(c.Kept, Field{Name: "MIG mode", From: "on", To: "on", Reason: "somebody else's slices are on it; destroy again once they are gone"})
		return true
	}
	if c.restore("MIG mode", resource.OnOff(g.MIG), resource.OnOff(*was), g.MIG == *ours) {
		c.Settings.MIG = was
	}
	return false
}

func (c *GPUChange) restorePersistence(held resource.PriorGPU, g resource.GPU) {
	was, ours := held.Baseline.Persistence, held.Applied.Persistence
	if was != nil && ours != nil && c.restore("persistence mode", resource.OnOff(g.Persistence), resource.OnOff(*was), g.Persistence == *ours) {
		c.Settings.Persistence = was
	}
}
