package plan

import (
	"cmp"
	"slices"
	"sort"

	"cosplay/internal/resource"
)

// Made is what an operation created, or what is known of what it removed.
type Made struct {
	Handle  *resource.Handle `json:"handle,omitempty"`
	Body    *resource.Body   `json:"container,omitempty"`
	Used    *resource.Use    `json:"used,omitempty"`     // by the session whose body was removed
	PowerMW *int             `json:"power_mw,omitempty"` // what the driver rounded a power limit to
	At      resource.Moment  `json:"at,omitempty"`       // when, for an operation after which a session is up
}

// Fold returns the state after an operation.
func Fold(prior resource.Prior, op Op, made Made) resource.Prior {
	p := prior.Clone()
	FoldInto(&p, op, made)
	return p
}

// FoldInto makes a state the one after an operation. Nothing else defines that: apply folds after each step, recovery
// folds the journal. It changes the slices and maps of the state.
func FoldInto(to *resource.Prior, op Op, made Made) {
	p, prior := *to, *to
	switch op := op.(type) {
	case TakeGPU:
		hold(&p, resource.PriorGPU{Host: op.Host, UUID: op.GPU, Baseline: op.Baseline, Applied: op.Holds, LockBefore: op.LockBefore})
	case HoldGPU:
		onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) { g.Applied = op.Holds.Over(g.Applied) })
	case DoubtClock:
		onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) { g.ClockUnsure = true })
	case NoteBoot:
		p.BootIDs[op.Host] = op.BootID
	case SetGPU:
		onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) { set(g, op, made) })
	case RunMPS:
		onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) { g.Daemons = g.With(op.MPS) })
	case StopMPS:
		onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) { g.Daemons = g.Without(op.MPS.Folder) })
	case ReleaseGPU:
		p.GPUs = slices.DeleteFunc(p.GPUs, func(g resource.PriorGPU) bool { return g.Host == op.Host && g.UUID == op.GPU })
	case CreateSlice:
		edit(&p, op.Session.Address, func(s *resource.PriorSession) { s.Session, s.Handle = op.Session, made.Handle })
	case JoinSlice:
		if with, _ := p.Session(op.With); with.Handle != nil {
			handle := *with.Handle
			edit(&p, op.Session.Address, func(s *resource.PriorSession) { s.Session, s.Handle = op.Session, &handle })
		}
	case DestroySlice:
		if was, _ := prior.Session(op.Address); !SharedByOther(prior, was) { // its MPS daemon ends with the slice
			onGPU(p, op.Slice.Host, op.Slice.GPU, func(g *resource.PriorGPU) { g.Daemons = g.Without(was.MPS) })
		}
		edit(&p, op.Address, func(s *resource.PriorSession) { s.Handle = nil })
	case LeaveSlice:
		edit(&p, op.Address, func(s *resource.PriorSession) { s.Handle = nil })
	case Prepare:
		edit(&p, op.Session.Address, func(s *resource.PriorSession) {
			s.Session, s.Body, s.Unfinished = op.Session, made.Body, false
			if op.How != Refit || s.UpAt == 0 {
				expired, _ := prior.HasExpired(op.Session.Address)
				s.UpAt, s.ExtendedTo = made.At, expired.ExtendedTo
			}
			if s.Slice.Whole() {
				s.Handle = nil // of a slice that it had before
			}
			if made.Body != nil && s.Spec.SSH.Port == 0 {
				s.Spec.SSH.Kept = made.Body.SSHPort // for the next container
			}
		})
		p = p.Unexpire(op.Session.Address)
	case EndSession:
		p = p.Expire(op.Expired)
	case ForgetExpired:
		p = p.Unexpire(op.Address)
	case Unprepare:
		edit(&p, op.Address, func(s *resource.PriorSession) { s.Body, s.Unfinished = nil, false })
	case StopSession:
		edit(&p, op.Address, func(s *resource.PriorSession) { s.Stopped = true })
	case StartSession:
		edit(&p, op.Address, func(s *resource.PriorSession) {
			if s.Stopped = false; made.Body != nil {
				s.Body = made.Body
			}
			s.UpAt, s.ExtendedTo = made.At, 0
		})
	case Record:
		edit(&p, op.Session.Address, func(s *resource.PriorSession) {
			s.Session = op.Session
			s.UpAt = cmp.Or(s.UpAt, made.At) // an older cosplay did not record it
		})
	case MoveSessions:
		p = p.Rename(op.Moves)
	case Adopt:
		if op.GPU != nil {
			hold(&p, *op.GPU)
		}
		for _, g := range op.MoreGPUs {
			hold(&p, g)
		}
		edit(&p, op.Session.Address, func(s *resource.PriorSession) {
			*s = op.Session
			s.UpAt = cmp.Or(s.UpAt, made.At)
		})
	case Forget:
		forget(&p, op.Address)
	case LeaveGPU, EnsureImage: // the state does not have them
	}
	if len(p.GPUs) > len(prior.GPUs) {
		slices.SortFunc(p.GPUs, resource.PriorGPU.Compare)
	}
	*to = p
}

// Part is what carrying out an operation, and reporting it, reads of the state: the rest may change meanwhile.
func Part(prior resource.Prior, op Op) resource.Prior {
	var (
		gpu     resource.GPUKey
		session resource.Address
		with    func(*resource.PriorSession) bool // other sessions
	)
	switch op := op.(type) {
	case SetGPU:
		gpu = resource.GPUKey{Host: op.Host, UUID: op.GPU}
	case RunMPS:
		with = func(s *resource.PriorSession) bool { return s.MPS == op.MPS.Folder }
	case CreateSlice:
		if op.Beside != nil {
			session = *op.Beside
		}
	case DestroySlice:
		session = op.Address
		was, _ := prior.Session(op.Address)
		if !was.Slice.Shared() {
			break
		}
		with = func(s *resource.PriorSession) bool { return onOneSlice(s, &was) }
	case Prepare:
		session = op.Session.Address
	case Unprepare:
		session = op.Address
	case StartSession:
		session = op.Address
	default:
	}
	part := prior
	part.BootIDs, part.GPUs, part.Sessions, part.Expired = nil, nil, nil, nil
	if g, held := prior.GPU(gpu.Host, gpu.UUID); held {
		part.GPUs = append(part.GPUs, g)
	}
	if with == nil {
		if s := prior.Lookup(session); s != nil {
			part.Sessions = []resource.PriorSession{*s}
		}
		return part
	}
	for i := range prior.Sessions {
		if s := &prior.Sessions[i]; s.Address == session || with(s) {
			part.Sessions = append(part.Sessions, *s)
		}
	}
	return part
}

// onOneSlice reports whether two sessions have the same slice.
func onOneSlice(a, b *resource.PriorSession) bool {
	return a.Handle != nil && b.Handle != nil && *a.Handle == *b.Handle && a.Slice.Beside(b.Slice)
}

// BringsUp reports whether a session is up after an operation, so that Fold needs to know when that was.
func BringsUp(op Op) bool {
	switch op.(type) {
	case Prepare, StartSession, Record, Adopt:
		return true
	default:
		return false
	}
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

// Ended is the state after a run that had to create these sessions has ended or was interrupted: those that do not
// exist are missing.
func Ended(prior resource.Prior, creates []resource.Address) resource.Prior {
	p := prior.Clone()
	p.Missing = slices.DeleteFunc(append(p.Missing, creates...), func(a resource.Address) bool {
		_, made := p.Session(a)
		return made
	})
	slices.SortFunc(p.Missing, resource.Address.Compare)
	p.Missing = slices.Compact(p.Missing)
	return p.Remembering()
}

// Unfinished records that a run was interrupted while it worked on the body of a session.
func Unfinished(prior resource.Prior, a resource.Address) resource.Prior {
	p := prior.Clone()
	if s := p.Lookup(a); s != nil {
		s.Unfinished = true
	}
	return p
}

// set records a setting of a GPU. Only a power limit can get another value than the requested one, and only for a
// lock the state has more than its value.
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
	if op.Baseline != nil && !g.Baseline.Has(op.Setting) {
		g.Baseline = g.Baseline.With(op.Setting, *op.Baseline)
	}
}

// UnsureClock records that a clock lock may or may not have been set.
func UnsureClock(prior resource.Prior, op SetGPU) resource.Prior {
	p := prior.Clone()
	onGPU(p, op.Host, op.GPU, func(g *resource.PriorGPU) {
		g.Applied, g.ClockUnsure = g.Applied.With(op.Setting, op.Value), true
	})
	return p
}

// onGPU changes a GPU of a cloned prior.
func onGPU(p resource.Prior, host, uuid string, change func(*resource.PriorGPU)) {
	for i := range p.GPUs {
		if p.GPUs[i].Host == host && p.GPUs[i].UUID == uuid {
			change(&p.GPUs[i])
		}
	}
}

// edit changes a session of a cloned prior, which stays sorted. It adds a session that the prior lacks, and drops one
// without slice and body.
func edit(p *resource.Prior, a resource.Address, change func(*resource.PriorSession)) {
	s, _ := p.Session(a)
	s.Address = a
	change(&s)
	i, found := sort.Find(len(p.Sessions), func(i int) int { return a.Compare(p.Sessions[i].Address) })
	switch empty := s.Handle == nil && s.Body == nil; {
	case found && empty:
		p.Sessions = removed(p.Sessions, i)
	case found:
		p.Sessions[i] = s
	case !empty:
		p.Sessions = slices.Insert(p.Sessions, i, s)
	}
	p.Recall(s)
}

// forget drops a session that another step has removed, or that stops being cosplay's.
func forget(p *resource.Prior, a resource.Address) {
	p.Missing = slices.DeleteFunc(p.Missing, func(o resource.Address) bool { return o == a })
	if i, found := sort.Find(len(p.Sessions), func(i int) int { return a.Compare(p.Sessions[i].Address) }); found {
		s := p.Sessions[i]
		p.Sessions = removed(p.Sessions, i)
		p.GiveUp(s)
	}
}

// hold adds a GPU that the prior lacks: a baseline is never overwritten.
func hold(p *resource.Prior, g resource.PriorGPU) {
	if _, held := p.GPU(g.Host, g.UUID); !held {
		p.GPUs = append(p.GPUs, g)
	}
	p.Forgotten = slices.DeleteFunc(p.Forgotten, func(thing string) bool { return thing == g.UUID })
}

// removed removes an element of a list, and moves the fewer of the others: a fleet is destroyed from its begin.
func removed[T any](list []T, i int) []T {
	if i > len(list)/2 {
		return slices.Delete(list, i, i+1)
	}
	copy(list[1:i+1], list[:i])
	clear(list[:1])
	return list[1:]
}

// SharedByOther reports whether another session has the MIG slice of a session, too.
func SharedByOther(prior resource.Prior, s resource.PriorSession) bool {
	if !s.Slice.Shared() {
		return false
	}
	for i := range prior.Sessions {
		if o := &prior.Sessions[i]; o.Address != s.Address && onOneSlice(o, &s) {
			return true
		}
	}
	return false
}
