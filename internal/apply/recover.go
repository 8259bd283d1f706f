package apply

import (
	"cmp"
	"fmt"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// CheckJournal reports an error if a journal is inconsistent: it must start with Begin, and no step may end that was
// not started. The error names the line.
func CheckJournal(entries []Entry) error {
	started := map[string]bool{}
	for n, e := range entries {
		wrong := ""
		switch {
		case (n == 0) != (e.Event == Begin):
			wrong = "a run begins once, with its first line"
		case e.Event == Begin:
		case e.Step == "":
			wrong = "it names no step"
		case e.Event == Started && (e.Op == nil || e.Op.Op == nil):
			wrong = "it does not say what was started"
		case e.Event == Started:
			started[e.Step] = true
		case e.Event == Done && e.Op != nil && e.Op.Op != nil: // bookkeeping, which is done at once
		case e.Event != Done && e.Event != Failed:
			wrong = fmt.Sprintf("%q is no event", e.Event)
		case !started[e.Step]:
			wrong = fmt.Sprintf("%s ends, but never began", e.Step)
		}
		if wrong != "" {
			return fmt.Errorf("line %d cannot be: %s", n+1, wrong)
		}
	}
	return nil
}

// Recover computes the state from the journal of an interrupted run and a snapshot of the hosts. It
// applies the finished steps to the prior state; for a step of which the journal has no end, the snapshot shows what it
// changed. It changes nothing on the hosts; the next apply does what is left. The notes state what it found. The journal
// must be one that CheckJournal accepts.
func Recover(prior resource.Prior, entries []Entry, live resource.Live) (resource.Prior, []resource.Note) {
	var (
		notes []resource.Note
		begin Entry
		open  = map[string]Entry{} // started, end unknown; or failed
		op    = map[string]plan.Op{}
		order []string
	)
	prior = prior.Clone()
	for _, e := range entries {
		switch e.Event {
		case Begin:
			begin = e
		case Started:
			open[e.Step], op[e.Step] = e, e.Op.Op
			order = append(order, e.Step)
		case Failed:
			open[e.Step] = e
		case Done:
			done := op[e.Step]
			if e.Op != nil && e.Op.Op != nil { // bookkeeping
				done = e.Op.Op
			}
			plan.FoldInto(&prior, done, *cmp.Or(e.Made, &plan.Made{}))
			delete(open, e.Step)
		}
	}
	for _, id := range order {
		e, unsettled := open[id]
		if !unsettled {
			continue
		}
		var note resource.Note
		prior, note = settle(prior, op[id], e, begin, live)
		note.Step = id
		notes = append(notes, note)
		delete(open, id)
	}
	return plan.Ended(prior, begin.Creates), notes
}

// Open are the operations of a journal that started and whose end it does not have.
func Open(entries []Entry) (open []plan.Op) {
	ended := map[string]bool{}
	for _, e := range entries {
		ended[e.Step] = ended[e.Step] || e.Event == Done || e.Event == Failed
	}
	for _, e := range entries {
		if e.Event == Started && !ended[e.Step] {
			open = append(open, e.Op.Op)
		}
	}
	return open
}

// settle reads from the snapshot what an operation has changed whose end is not known, or that failed. e is the last
// entry of the journal for it.
func settle(prior resource.Prior, op plan.Op, e, begin Entry, live resource.Live) (resource.Prior, resource.Note) {
	done := func(happened bool) (resource.Prior, resource.Note) { return settled(prior, op, e, happened) }
	unread := live.Unreachable(Effect{Op: op}.Change().Host) // what it shows later brings the state up to date
	switch op := op.(type) {
	case plan.TakeGPU:
		return done(holds(live, op.Host, op.GPU, begin.Lineage))
	case plan.LeaveGPU:
		return done(true) // the state does not have it, and it can be done again
	case plan.ReleaseGPU:
		return done(!unread && !holds(live, op.Host, op.GPU, begin.Lineage))
	case plan.SetGPU:
		return settleSet(prior, op, e, live)
	case plan.RunMPS:
		return done(true) // as far as it came: the next plan compares the daemon with it, and a removal leaves no folder
	case plan.StopMPS:
		host, _ := live.Host(op.Host)
		_, there := host.MPS.Daemon(op.MPS.Folder)
		return done(!unread && !there)
	case plan.CreateSlice:
		return settleCreate(prior, op, e, begin, live)
	case plan.DestroySlice:
		return settleDestroy(prior, op, e, live)
	case plan.Prepare:
		return settlePrepare(prior, op, e, live)
	case plan.Unprepare:
		return settleUnprepare(prior, op, e, live)
	case plan.StopSession:
		c, there := live.Body(op.Host, op.Runtime, op.ID)
		return done(there && c.State == resource.Stopped)
	case plan.StartSession:
		s, _ := prior.Session(op.Address)
		c, there := live.Body(op.Host, op.Runtime, s.ID)
		return done(there && c.State == resource.Running)
	case plan.EndSession:
		return done(true) // its programs may have ended; the next plan removes the rest
	case plan.EnsureImage, plan.HoldGPU, plan.DoubtClock, plan.NoteBoot, plan.JoinSlice, plan.LeaveSlice, plan.Record, plan.Adopt, plan.Forget, plan.ForgetExpired, plan.MoveSessions: // the next plan does it
	}
	return done(false)
}

// settled is the state after an operation that the snapshot shows to have happened, or not at all.
func settled(prior resource.Prior, op plan.Op, e Entry, happened bool) (resource.Prior, resource.Note) {
	if happened {
		return plan.Fold(prior, op, plan.Made{At: moment(op, e.Time)}), resource.Note{Kind: resource.StepDone}
	}
	return prior, resource.Note{Kind: resource.StepNotDone}
}

// settleSet compares a setting. A power limit may have been rounded, and a clock lock cannot be read.
func settleSet(prior resource.Prior, op plan.SetGPU, e Entry, live resource.Live) (resource.Prior, resource.Note) {
	g, ok := live.GPU(op.Host, op.GPU)
	if op.Setting == resource.SMClock {
		if e.Event == Failed && refusedLock(g) {
			return settled(prior, op, e, false)
		}
		return plan.UnsureClock(prior, op), resource.Note{Kind: resource.LockUnsure}
	}
	now, readable := g.Now(op.Setting)
	if op.Setting == resource.PowerLimit && !op.Restore && resource.RoundedPower(op.Value, now) {
		op.Value = now // the next plan sets it again
	}
	return settled(prior, op, e, ok && (readable && now == op.Value || !readable && e.Event != Failed))
}

func settlePrepare(prior resource.Prior, op plan.Prepare, e Entry, live resource.Live) (resource.Prior, resource.Note) {
	c, there := live.Body(op.Session.Slice.Host, op.Session.Runtime, op.Session.ID)
	if !there {
		return settled(prior, op, e, false)
	}
	prior = plan.Fold(prior, op, plan.Made{Body: &c, At: moment(op, e.Time)})
	if !op.Session.HasHash(live.KeyOn(op.Session.Slice.Host, prior.Key), c.Hash) || !whole(c, c.Hash) && !op.Session.Rests(c) {
		return plan.Unfinished(prior, op.Session.Address), resource.Note{Kind: resource.BodyIncomplete, Runtime: op.Session.Runtime}
	}
	return prior, resource.Note{Kind: resource.BodyTaken, Runtime: op.Session.Runtime}
}

func settleUnprepare(prior resource.Prior, op plan.Unprepare, e Entry, live resource.Live) (resource.Prior, resource.Note) {
	c, there := live.Body(op.Host, op.Runtime, op.ID)
	half := resource.RuntimeNamed(op.Runtime).LeavesFiles // without a body they may still be there
	if there {
		s, _ := prior.Session(op.Address)
		half = s.Body != nil && !whole(c, s.Body.Hash)
	}
	if half {
		return plan.Unfinished(prior, op.Address), resource.Note{Kind: resource.StepHalfDone}
	}
	return settled(prior, op, e, !there)
}

// whole reports whether a body is complete and runs.
func whole(c resource.Body, hash string) bool {
	return c.State == resource.Running && c.Hash == hash && c.Damaged == ""
}

// refusedLock reports whether the driver is known to offer no clock lock: then none was set.
func refusedLock(g resource.GPU) bool {
	lacks, without := g.Degradation(resource.FeatureClock)
	return without && lacks.Set && lacks.Code != unknownError
}

// unknownError is NVML's code after which a call may have had an effect.
const unknownError = 999

// holds reports whether a project is a holder of a GPU in the host's ledger.
func holds(live resource.Live, host, gpu, lineage string) bool {
	held, _ := live.Page(host, gpu)
	_, holds := held.Holder(lineage)
	return holds
}

// noted reports whether the host's ledger has a slice among a project's. The agent records it there before it creates
// the slice, and adds the UUID afterwards.
func noted(live resource.Live, lineage string, s resource.LiveSlice) bool {
	held, _ := live.Page(s.Host, s.GPU)
	us, _ := held.Holder(lineage)
	return slices.ContainsFunc(us.Slices, func(o resource.LiveSlice) bool {
		o.Host = s.Host // its name in the configuration may have changed
		return s.IsAt(o.Slice) && (o.UUID == "" || o.Match(s) != resource.OtherSlice)
	})
}

// settleCreate looks for the slice that a run may have created. A slice has no label. If the driver's answer says
// what is left of it, that decides. Else the slice is the project's if it has the profile and the placement, did not
// exist before the run, is in the ledger, is from the same boot, and no process uses it yet: the session's programs
// start later.
func settleCreate(prior resource.Prior, op plan.CreateSlice, e, begin Entry, live resource.Live) (resource.Prior, resource.Note) {
	want := op.Session.Slice.Place()
	host, _ := live.Host(want.Host)
	if host.Unreachable == "" && host.BootID != begin.BootIDs[want.Host] {
		return prior, resource.Note{Kind: resource.HostRebooted}
	}
	g, readable := live.Sliced(want.Host, want.GPU)
	other := diff.Overlapping(g, want)
	switch {
	case e.Sure && (e.Made == nil || e.Made.Handle == nil), readable && other == nil:
		return settled(prior, op, e, false)
	case !readable:
		unseen := plan.Made{Handle: &resource.Handle{GPUInstance: resource.Unseen}}
		return plan.Fold(prior, op, unseen), resource.Note{Kind: resource.SliceUnseen}
	case e.Sure && other.IsAt(want) && other.GPUInstance == e.Made.Handle.GPUInstance:
		return plan.Fold(prior, op, plan.Made{Handle: &other.Handle}), resource.Note{Kind: resource.InstanceTaken}
	case !other.IsAt(want), slices.Contains(begin.Slices, *other), !host.Unbooked && !noted(live, begin.Lineage, *other):
		return prior, resource.Note{Kind: resource.SliceIsForeign, Slice: *other}
	case inUse(g, *other):
		return prior, resource.Note{Kind: resource.SliceInUse, Slice: *other}
	}
	return plan.Fold(prior, op, plan.Made{Handle: &other.Handle}), resource.Note{Kind: resource.SliceTaken}
}

func inUse(g resource.GPU, s resource.LiveSlice) bool {
	return slices.ContainsFunc(g.Processes, func(p resource.Process) bool { return p.In(s.Handle) })
}

// Reconsider looks for the slices that were not readable when they were settled, once their GPU is back.
func Reconsider(prior resource.Prior, live resource.Live) resource.Prior {
	prior = renameSlices(prior, live)
	for _, s := range prior.Sessions {
		if s.Handle == nil || s.Handle.GPUInstance != resource.Unseen {
			continue
		}
		g, readable := live.Sliced(s.Slice.Host, s.Slice.GPU)
		if !readable {
			continue
		}
		host, _ := live.Host(s.Slice.Host)
		l := diff.Overlapping(g, s.Slice)
		if l != nil && l.IsAt(s.Slice) && host.BootID == prior.BootIDs[host.Name] && noted(live, prior.Lineage, *l) && !inUse(g, *l) {
			prior = plan.Fold(prior, plan.CreateSlice{Session: s.Session}, plan.Made{Handle: &l.Handle})
		} else {
			prior = plan.Fold(prior, plan.DestroySlice{Address: s.Address}, plan.Made{})
		}
	}
	return prior
}

// renameSlices gives slices the names that the driver gives them now: an update may have changed the name of a slice
// that still exists.
func renameSlices(prior resource.Prior, live resource.Live) resource.Prior {
	placements := prior.Placements()
	for _, h := range live.Hosts {
		for _, g := range h.GPUs {
			for _, s := range placements.On(g) {
				if s.Handle == nil {
					continue
				}
				own := resource.LiveSlice{Slice: s.Slice, Handle: *s.Handle}
				for _, l := range g.Slices {
					if l.UUID != "" && own.UUID != "" && l.UUID != own.UUID && own.Match(l) != resource.OtherSlice {
						handle := l.Handle // a copy: the state keeps it
						prior = plan.Fold(prior, plan.CreateSlice{Session: s.Session}, plan.Made{Handle: &handle})
					}
				}
			}
		}
	}
	return prior
}

func settleDestroy(prior resource.Prior, op plan.DestroySlice, e Entry, live resource.Live) (resource.Prior, resource.Note) {
	prior = Reconsider(prior, live)
	s, ok := prior.Session(op.Address)
	if !ok || s.Handle == nil {
		return prior, resource.Note{Kind: resource.StepNothingLeft}
	}
	if _, readable := live.Sliced(op.Slice.Host, op.Slice.GPU); !readable {
		return prior, resource.Note{Kind: resource.StepUnreadable}
	}
	own, there := diff.OwnSlice(s, live)
	if there && own.UUID == "" && s.Handle.UUID != "" {
		// The compute instance was removed, the GPU instance is left: it is still the project's.
		prior = plan.Fold(prior, plan.CreateSlice{Session: s.Session}, plan.Made{Handle: &own.Handle})
		return prior, resource.Note{Kind: resource.StepHalfDone}
	}
	return settled(prior, op, e, !there)
}
