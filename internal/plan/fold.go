package plan

import (
	"slices"

	"cosplay/internal/resource"
)

// Made is what an operation brought into the world, or what is known at last of what it took out of it.
type Made struct {
	Handle  *resource.Handle `json:"handle,omitempty"`
	Body    *resource.Body   `json:"container,omitempty"`
	Used    *resource.Use    `json:"used,omitempty"`     // by the session whose container went
	PowerMW *int             `json:"power_mw,omitempty"` // what the driver rounded a power limit to
}

// Fold returns what the state remembers once an operation is done. It is the
// one place that knows: apply folds as it goes, recovery folds the journal.
func Fold(prior resource.Prior, op Op, made Made) resource.Prior {
	p := prior.Clone()
	switch op := op.(type) {
	case TakeGPU:
		if _, held := p.GPU(op.Host, op.GPU); !held { // a baseline is never overwritten
			p.GPUs = append(p.GPUs, resource.PriorGPU{Host: op.Host, UUID: op.GPU, Baseline: op.Baseline, Applied: op.Holds, LockBefore: op.LockBefore})
		}
	case HoldGPU:
		onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) { g.Applied = op.Holds.Over(g.Applied) })
	case DoubtClock:
		onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) { g.ClockUnsure = true })
	case NoteBoot:
		p.BootIDs[op.Host] = op.BootID
	case SetGPU:
		onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) { set(g, op, made) })
	case ReleaseGPU:
		p.GPUs = slices.DeleteFunc(p.GPUs, func(g resource.PriorGPU) bool { return g.Host == op.Host && g.UUID == op.GPU })
	case CreateSlice:
		s := entry(p, op.Session.Address)
		s.Session, s.Handle = op.Session, made.Handle
		p = put(p, s)
	case DestroySlice:
		s := entry(p, op.Address)
		s.Handle = nil
		p = put(p, s)
	case Prepare:
		s := entry(p, op.Session.Address)
		s.Session, s.Body, s.Unfinished = op.Session, made.Body, false
		if s.Slice.Whole() {
			s.Handle = nil // of a slice that it had before
		}
		s.Session = keepPort(s.Session, made.Body)
		p = put(p, s)
	case Unprepare:
		s := entry(p, op.Address)
		s.Body, s.Unfinished = nil, false
		p = put(p, s)
	case Record:
		s := entry(p, op.Session.Address)
		s.Session = op.Session
		p = put(p, s)
	case MoveSessions:
		p = p.Rename(op.Moves)
	case Adopt:
		if g := op.GPU; g != nil {
			if _, held := p.GPU(g.Host, g.UUID); !held {
				p.GPUs = append(p.GPUs, *g)
			}
		}
		p = put(p, op.Session)
	case Forget:
		p = p.Forget(op.Address)
	case LeaveGPU, EnsureImage: // the state does not have them
	}
	slices.SortFunc(p.GPUs, resource.PriorGPU.Compare)
	return p.Remembering()
}

// Creates lists the sessions that steps create or bring up to date.
func Creates(steps []Step) []resource.Address {
	var all []resource.Address
	for _, s := range steps {
		if op, is := s.Do.Op.(Prepare); is {
			all = append(all, op.Session.Address)
		}
	}
	return all
}

// Ended is what the state remembers once a run has ended, or was interrupted, that
// had to create these sessions: those that do not exist are missing.
func Ended(prior resource.Prior, creates []resource.Address) resource.Prior {
	p := prior.Clone()
	p.Missing = slices.DeleteFunc(append(p.Missing, creates...), func(a resource.Address) bool {
		_, made := p.Session(a)
		return made
	})
	slices.SortFunc(p.Missing, resource.Address.Compare)
	p.Missing = slices.Compact(p.Missing)
	return p
}

// Unfinished notes that a run was interrupted while it worked on the container of a session.
func Unfinished(prior resource.Prior, a resource.Address) resource.Prior {
	p := prior.Clone()
	for i := range p.Sessions {
		if p.Sessions[i].Address == a {
			p.Sessions[i].Unfinished = true
		}
	}
	return p
}

// keepPort notes the free port that a container took, for the one after it.
func keepPort(s resource.Session, made *resource.Body) resource.Session {
	if made != nil && s.Spec.SSH.Port == 0 {
		s.Spec.SSH.Kept = made.SSHPort
	}
	return s
}

// set notes a setting of a GPU. Only a power limit can become another value than the
// one that was asked for, and only of a lock the state has more than its value.
func set(g *resource.PriorGPU, op SetGPU, made Made) {
	now := op.Value
	if op.Setting == resource.PowerLimit {
		g.AskedPowerMW = nil
		if made.PowerMW != nil {
			now, g.AskedPowerMW = *made.PowerMW, &op.Value
		}
	}
	if op.Setting == resource.SMClock {
		g.ClockUnsure, g.ClockRefutedMHz = false, 0
	}
	g.Applied = g.Applied.With(op.Setting, now)
}

// UnsureClock notes that a clock lock may or may not have been set.
func UnsureClock(prior resource.Prior, op SetGPU) resource.Prior {
	p := prior.Clone()
	onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) {
		g.Applied, g.ClockUnsure = g.Applied.With(op.Setting, op.Value), true
	})
	return p
}

// onGPU changes a held GPU in a cloned prior.
func onGPU(p resource.Prior, host, uuid string, change func(*resource.PriorGPU)) {
	for i := range p.GPUs {
		if p.GPUs[i].Host == host && p.GPUs[i].UUID == uuid {
			change(&p.GPUs[i])
		}
	}
}

func entry(p resource.Prior, a resource.Address) resource.PriorSession {
	s, ok := p.Session(a)
	if !ok {
		s.Address = a
	}
	return s
}

// put stores a session in its place, or drops one of which nothing is left; Sessions stays sorted by address.
func put(p resource.Prior, s resource.PriorSession) resource.Prior {
	if s.Handle == nil && s.Body == nil {
		p.Sessions = slices.DeleteFunc(p.Sessions, func(o resource.PriorSession) bool { return o.Address == s.Address })
		return p
	}
	i, found := slices.BinarySearchFunc(p.Sessions, s, func(a, b resource.PriorSession) int { return a.Address.Compare(b.Address) })
	if found {
		p.Sessions[i] = s
	} else {
		p.Sessions = slices.Insert(p.Sessions, i, s)
	}
	return p
}
