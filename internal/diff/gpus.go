package diff

import (
	"slices"

	"cosplay/internal/resource"
)

// gpuChanges pairs the GPUs that sessions want with those in hand.
func gpuChanges(desired resource.Desired, prior resource.Prior, live resource.Live, o Options) []GPUChange {
	var all []GPUChange
	for _, want := range desired.GPUs {
		if g, ok := live.GPU(want.Host, want.UUID); ok {
			all = append(all, setUp(want, g, prior, live, o))
		}
	}
	for _, held := range prior.GPUs {
		wanted := slices.ContainsFunc(desired.GPUs, func(d resource.DesiredGPU) bool { return d.Host == held.Host && d.UUID == held.UUID })
		if !wanted {
			all = append(all, giveBack(held, prior, live))
		}
	}
	slices.SortFunc(all, func(a, b GPUChange) int { return resource.CompareGPU(a.Host, a.UUID, b.Host, b.UUID) })
	return all
}

// setUp brings a GPU to what its sessions need.
func setUp(want resource.DesiredGPU, g resource.GPU, prior resource.Prior, live resource.Live, o Options) GPUChange {
	c := GPUChange{Host: want.Host, UUID: want.UUID, Action: NoOp}
	held, ours := prior.GPU(want.Host, want.UUID)
	if !ours {
		c.Action, c.Baseline = Create, baseline(g, o.BaselineClockMHz[want.Host])
	}
	c.Holds = holds(want.Settings, g)
	if on := want.Settings.Persistence; on != nil && *on != g.Persistence {
		c.Settings.Persistence = on
		c.Fields = append(c.Fields, Field{Name: "persistence mode", From: resource.OnOff(g.Persistence), To: resource.OnOff(*on), Reason: "without it the driver forgets limits and locks"})
	}
	if on := want.Settings.MIG; on != nil && *on != g.MIG {
		c.Settings.MIG = on
		c.Fields = append(c.Fields, Field{Name: "MIG mode", From: resource.OnOff(g.MIG), To: resource.OnOff(*on), Reason: want.Why.MIG})
	}
	if mw := want.Settings.PowerMW; mw != nil {
		field := Field{Name: "power limit", From: resource.Watts(g.PowerMW), To: resource.Watts(*mw), Reason: want.Why.Power}
		if *mw != g.PowerMW {
			c.Settings.PowerMW = mw
			c.Fields = append(c.Fields, field)
		} else if field.Reason != "" {
			c.Kept = append(c.Kept, field)
		}
	}
	lost := ours && clockLost(held, g, sameBoot(prior, live, want.Host))
	if mhz := want.Settings.ClockMHz; mhz != nil && clockToSet(*mhz, held, lost) {
		c.Settings.ClockMHz = mhz
		c.Fields = append(c.Fields, Field{Name: "SM clock", From: clockNow(held, lost), To: resource.Clock(*mhz), Reason: want.Why.Clock})
	}
	if ours && len(c.Fields) > 0 {
		c.Action = Update
	}
	return c
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

// clockToSet decides about the one setting that cannot be read. lost is what is
// known of the lock that was applied.
func clockToSet(want int, held resource.PriorGPU, lost bool) bool {
	applied := held.Applied.ClockMHz
	switch {
	case held.ClockUnsure:
		return true
	case applied == nil || *applied == 0:
		return want != 0
	}
	return lost || *applied != want
}

// clockNow names the lock as far as it is known.
func clockNow(held resource.PriorGPU, lost bool) string {
	applied := held.Applied.ClockMHz
	switch {
	case held.ClockUnsure:
		return "unknown"
	case applied == nil || *applied == 0:
		return resource.Clock(0)
	case lost:
		return "lifted"
	}
	return resource.Clock(*applied)
}

// baseline is what a GPU is like before cosplay touches it. A clock lock cannot
// be read: it is what the configuration tells, or nothing.
func baseline(g resource.GPU, clockMHz int) *resource.Settings {
	b := &resource.Settings{Persistence: &g.Persistence, PowerMW: &g.PowerMW}
	if g.Model.MIG() {
		b.MIG = &g.MIG
	}
	if clockMHz != 0 {
		b.ClockMHz = &clockMHz
	}
	return b
}

// giveBack restores a GPU that nobody needs any more: each setting only where
// its live value is still ours, or unknown.
func giveBack(held resource.PriorGPU, prior resource.Prior, live resource.Live) GPUChange {
	c := GPUChange{Host: held.Host, UUID: held.UUID, Action: Delete}
	g, ok := live.GPU(held.Host, held.UUID)
	if !ok {
		c.Kept = append(c.Kept, Field{Name: "GPU", From: "gone", To: "gone", Reason: "it is not there; nothing can be restored"})
		return c
	}
	restore := func(name, from, to string, stillOurs bool) bool {
		switch {
		case from == to:
			return false
		case !stillOurs:
			c.Kept = append(c.Kept, Field{Name: name, From: from, To: from, Reason: "changed by somebody since"})
			return false
		}
		c.Fields = append(c.Fields, Field{Name: name, From: from, To: to})
		return true
	}
	if was, ours := held.Baseline.PowerMW, held.Applied.PowerMW; was != nil && ours != nil &&
		restore("power limit", resource.Watts(g.PowerMW), resource.Watts(*was), g.PowerMW == *ours) {
		c.Settings.PowerMW = was
	}
	if ours := held.Applied.ClockMHz; (ours != nil && *ours != 0) || held.ClockUnsure {
		to := 0
		if held.Baseline.ClockMHz != nil {
			to = *held.Baseline.ClockMHz
		}
		lost := !held.ClockUnsure && clockLost(held, g, sameBoot(prior, live, held.Host))
		// A lock that is gone is as good as lifted, unless somebody has set another.
		if free := lost && to == 0 && g.LockState(0) == resource.LockUnknown; !free && restore("SM clock", clockNow(held, lost), resource.Clock(to), !lost) {
			c.Settings.ClockMHz = &to
		}
	}
	if was, ours := held.Baseline.MIG, held.Applied.MIG; was != nil && ours != nil {
		if foreign := Foreign(g, prior); len(foreign) > 0 && !*was && g.MIG {
			c.Kept = append(c.Kept, Field{Name: "MIG mode", From: "on", To: "on", Reason: "somebody else's slices are on it"})
		} else if restore("MIG mode", resource.OnOff(g.MIG), resource.OnOff(*was), g.MIG == *ours) {
			c.Settings.MIG = was
		}
	}
	if was, ours := held.Baseline.Persistence, held.Applied.Persistence; was != nil && ours != nil &&
		restore("persistence mode", resource.OnOff(g.Persistence), resource.OnOff(*was), g.Persistence == *ours) {
		c.Settings.Persistence = was
	}
	return c
}
