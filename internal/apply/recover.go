package apply

import (
	"fmt"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// Recover works out, from the journal of a run that was cut off and a look at
// the world, what the state has to remember: what is done is folded, and of a
// step that was started but not finished the world tells how far it came. It
// changes nothing; the next apply converges from there. The notes say what was
// found.
func Recover(prior resource.Prior, entries []Entry, live resource.Live) (resource.Prior, []string) {
	var (
		notes   []string
		before  []string
		started = map[string]Entry{}
		order   []string
	)
	prior = prior.Clone()
	for _, e := range entries {
		switch e.Event {
		case Begin:
			before = e.Slices
			prior.BootIDs = e.BootIDs
		case Started:
			started[e.Step] = e
			order = append(order, e.Step)
		case Done:
			op := e.Op // of bookkeeping
			if begun, ok := started[e.Step]; ok {
				op = begun.Op
			}
			made := plan.Made{}
			if e.Made != nil {
				made = *e.Made
			}
			prior = plan.Fold(prior, op.Op, made)
			delete(started, e.Step)
		}
	}
	for _, id := range order {
		e, open := started[id]
		if !open {
			continue
		}
		next, note := settle(prior, e.Op.Op, before, live)
		prior, notes = next, append(notes, id+": "+note)
		delete(started, id)
	}
	return prior, notes
}

// settle looks at the world for an operation whose end is not known.
func settle(prior resource.Prior, op plan.Op, before []string, live resource.Live) (resource.Prior, string) {
	done := func(happened bool) (resource.Prior, string) {
		if happened {
			return plan.Fold(prior, op, plan.Made{}), "it was done"
		}
		return prior, "it was not done"
	}
	switch op := op.(type) {
	case plan.SetMIG:
		g, ok := live.GPU(op.Host, op.GPU)
		return done(ok && g.MIG == op.On)
	case plan.SetPersistence:
		g, ok := live.GPU(op.Host, op.GPU)
		return done(ok && g.Persistence == op.On)
	case plan.SetPower:
		g, ok := live.GPU(op.Host, op.GPU)
		return done(ok && g.PowerMW == op.MW)
	case plan.SetClock:
		return plan.UnsureClock(prior, op), "a clock lock cannot be read; it will be set again"
	case plan.CreateSlice:
		return settleCreate(prior, op, before, live)
	case plan.DestroySlice:
		return settleDestroy(prior, op, live)
	case plan.Prepare:
		if c, ok := live.Container(op.Session.Slice.Host, op.Session.ID); ok {
			return plan.Fold(prior, op, plan.Made{Container: &c}), "its " + resource.ContainerWord(op.Session.Runtime) + " is there and taken over"
		}
	case plan.Unprepare:
		_, there := live.Container(op.Host, op.ID)
		return done(!there)
	}
	return prior, "it was not done"
}

// settleCreate looks for the slice that a cut-off run may have made. A slice
// carries no label: it is ours if it has the profile and the placement, and was
// not there before the run.
func settleCreate(prior resource.Prior, op plan.CreateSlice, before []string, live resource.Live) (resource.Prior, string) {
	want := op.Session.Slice
	g, _ := live.GPU(want.Host, want.GPU)
	for _, s := range g.Slices {
		if s.Profile == want.Profile && s.Start == want.Start && !slices.Contains(before, s.UUID) {
			return plan.Fold(prior, op, plan.Made{Handle: &s.Handle}), "its slice is there and taken over"
		}
	}
	if other := diff.Overlapping(g, want); other != nil {
		return prior, fmt.Sprintf("it was not done; a %s slice that is not ours is at slot %d", other.Profile, other.Start)
	}
	return prior, "it was not done"
}

func settleDestroy(prior resource.Prior, op plan.DestroySlice, live resource.Live) (resource.Prior, string) {
	s, ok := prior.Session(op.Address)
	if !ok {
		return prior, "there is nothing of it left"
	}
	own, there := diff.OwnSlice(s, live)
	if !there {
		return plan.Fold(prior, op, plan.Made{}), "it was done"
	}
	if own.UUID == "" && s.Handle.UUID != "" {
		// The compute instance went, the GPU instance is left: still ours.
		return plan.Fold(prior, plan.CreateSlice{Session: s.Session}, plan.Made{Handle: &own.Handle}), "it was half done"
	}
	return prior, "it was not done"
}
