package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// failure is the journal's entry for a step that failed.
func failure(id string, err error) Entry {
	e := Entry{Event: Failed, Time: time.Now(), Step: id, Error: err.Error()}
	var partial Partial
	if errors.As(err, &partial) {
		var left *resource.Handle
		if left, e.Sure = partial.Left(); left != nil {
			e.Made = &plan.Made{Handle: left}
		}
	}
	return e
}

// cleanUp finds out what each failed step has changed, and undoes what its group did in this run.
func (s *schedule) cleanUp(ctx context.Context) error {
	live, err := s.observe(ctx)
	if err != nil {
		return err // the next command settles the journal
	}
	for _, f := range s.failures {
		s.prior, _ = settle(s.prior, f.Step.Do.Op, failure(f.Step.ID, f.Err), s.begin, live)
	}
	if s.KeepPartial {
		return nil
	}
	for n := range s.failures {
		if err := s.undoGroup(ctx, &s.failures[n]); err != nil {
			return err
		}
	}
	return nil
}

// undoGroup undoes, in reverse, the steps of a failed step's group, including what the failed step has changed.
func (s *schedule) undoGroup(ctx context.Context, f *Failure) error {
	f.Undone = true
	for i, step := range slices.Backward(s.steps) {
		acted := s.outcomes[i] == succeeded || s.outcomes[i] == failed && s.remains(step)
		if step.Group != f.Step.Group || !acted || plan.Bookkeeping(step.Do.Op) && step.Undo.Op == nil {
			continue
		}
		if step.Undo.Op == nil {
			f.Undone = false // a GPU's setting, or a removal
			continue
		}
		if err := s.undoStep(ctx, step); err != nil {
			f.Undone = false
			if !errors.As(err, &f.Left) {
				return err // the journal's
			}
			live, unread := s.observe(ctx)
			if unread == nil { // it shows what the undo has changed
				s.prior, _ = settle(s.prior, step.Undo.Op, failure(step.ID+"/undo", err), s.begin, live)
			}
			return unread
		}
	}
	// A removal cannot be undone. If the session was removed completely, nothing is left to undo.
	f.Undone = f.Undone || s.removed(f.Step)
	return nil
}

// removed reports whether nothing is left of the session that a step belongs to.
func (s *schedule) removed(step plan.Step) bool {
	address, err := resource.ParseAddress(step.Group)
	if err != nil {
		return false // a GPU's
	}
	_, there := s.prior.Session(address)
	return !there
}

// remains reports whether a failed step has left something that the state has now.
func (s *schedule) remains(step plan.Step) bool {
	switch op := step.Do.Op.(type) {
	case plan.SetGPU:
		was, _ := s.before.GPU(op.Host, op.GPU)
		now, _ := s.prior.GPU(op.Host, op.GPU)
		return was.Applied != now.Applied
	case plan.TakeGPU, plan.LeaveGPU, plan.EnsureImage:
		return false
	case plan.CreateSlice:
		now, there := s.prior.Session(op.Session.Address)
		return there && now.Handle != nil
	case plan.Prepare:
		now, there := s.prior.Session(op.Session.Address)
		return there && now.Body != nil
	default:
		return true // a removal that failed
	}
}

// observe reads the hosts after a step has failed.
func (s *schedule) observe(ctx context.Context) (resource.Live, error) {
	live, err := s.Observe(ctx)
	if err != nil {
		err = fmt.Errorf("the host cannot be read after the failure of a step: %w", err)
	}
	return live, err
}

func (s *schedule) undoStep(ctx context.Context, step plan.Step) error {
	id, op := step.ID+"/undo", step.Undo
	if err := s.write(Entry{Event: Started, Step: id, Op: &op}); err != nil {
		return err
	}
	made, err := s.effect(ctx, op.Op, s.prior, s.says(step))
	if err != nil {
		s.tell(Event{Kind: UndoFailed, Step: step, Err: err})
		if err := s.write(failure(id, err)); err != nil {
			return err
		}
		return &UndoError{step, err}
	}
	plan.FoldInto(&s.prior, op.Op, made)
	s.tell(Event{Kind: UndoDone, Step: step})
	return s.write(Entry{Event: Done, Step: id, Made: &made})
}
