package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// outcome is how a step ended; a step that was not run has none.
type outcome int

const (
	pending outcome = iota
	running
	succeeded
	failed
)

// finished is what a worker reports.
type finished struct {
	index int
	made  plan.Made
	err   error
	took  time.Duration
}

// schedule is the bookkeeping of one run; a single goroutine owns it.
type schedule struct {
	*Run
	steps    []plan.Step
	outcomes []outcome
	byID     map[string]int
	prior    resource.Prior
	total    int
	number   int
	failures []Failure
	reports  chan finished
}

// Execute carries the steps out. When the context ends nothing new is started;
// the steps that run are finished. live is what the plan was made on.
func (r *Run) Execute(ctx context.Context, p *plan.Plan, prior resource.Prior, live resource.Live) (Result, error) {
	prior = prior.Clone()
	begin := Entry{Event: Begin, Lineage: prior.Lineage, Serial: prior.Serial, BootIDs: map[string]string{}}
	for _, h := range live.Hosts {
		prior.BootIDs[h.Name] = h.BootID
		begin.BootIDs[h.Name] = h.BootID
		for _, g := range h.GPUs {
			for _, s := range g.Slices {
				begin.Slices = append(begin.Slices, s.UUID)
			}
		}
	}
	if err := r.write(begin); err != nil {
		return Result{Prior: prior}, err
	}
	s := &schedule{Run: r, steps: p.Steps, outcomes: make([]outcome, len(p.Steps)), byID: map[string]int{},
		prior: prior, total: p.Effects(), reports: make(chan finished)}
	for i, step := range p.Steps {
		s.byID[step.ID] = i
	}
	err := s.loop(ctx)
	if err == nil && !r.KeepPartial {
		err = s.undo(context.WithoutCancel(ctx))
	}
	return s.result(ctx), err
}

// loop starts every step whose needs have succeeded, until none is left, one
// fails, or the context ends; then it waits for those that run.
func (s *schedule) loop(ctx context.Context) error {
	active := 0
	for {
		for active < max(1, s.Parallelism) && len(s.failures) == 0 && ctx.Err() == nil {
			i, ok := s.ready()
			if !ok {
				break
			}
			started, err := s.start(context.WithoutCancel(ctx), i)
			if err != nil {
				return s.drain(active, err)
			}
			if started {
				active++
			}
		}
		if active == 0 {
			return nil
		}
		if err := s.finish(<-s.reports); err != nil {
			return s.drain(active-1, err)
		}
		active--
	}
}

// drain waits for running steps once the journal cannot be written: what they
// made is folded all the same, so that the state can tell of it.
func (s *schedule) drain(active int, cause error) error {
	for range active {
		f := <-s.reports
		if f.err == nil {
			s.prior = plan.Fold(s.prior, s.steps[f.index].Do.Op, f.made)
			s.outcomes[f.index] = succeeded
		}
	}
	return cause
}

// ready finds the first step that waits for nothing any more.
func (s *schedule) ready() (int, bool) {
	for i, step := range s.steps {
		if s.outcomes[i] != pending {
			continue
		}
		free := true
		for _, need := range step.Needs {
			if s.outcomes[s.byID[need]] != succeeded {
				free = false
				break
			}
		}
		if free {
			return i, true
		}
	}
	return 0, false
}

// start begins a step; mere bookkeeping is done on the spot, and false.
func (s *schedule) start(ctx context.Context, i int) (bool, error) {
	step := s.steps[i]
	op := step.Do
	if plan.Bookkeeping(op.Op) {
		s.outcomes[i] = succeeded
		s.prior = plan.Fold(s.prior, op.Op, plan.Made{})
		return false, s.write(Entry{Event: Done, Step: step.ID, Op: &op})
	}
	if err := s.write(Entry{Event: Started, Step: step.ID, Op: &op}); err != nil {
		return false, err
	}
	s.outcomes[i] = running
	s.number++
	s.tell(Event{Kind: StepStarted, Step: step, Number: s.number, Total: s.total})
	prior := s.prior
	go func() {
		begun := time.Now()
		made, err := s.act(ctx, op.Op, prior)
		s.reports <- finished{index: i, made: made, err: err, took: time.Since(begun)}
	}()
	return true, nil
}

// finish books the end of a step.
func (s *schedule) finish(f finished) error {
	step := s.steps[f.index]
	number := s.finishedNumber()
	if f.err != nil {
		s.outcomes[f.index] = failed
		s.failures = append(s.failures, Failure{Step: step, Err: f.err})
		if clock, ok := step.Do.Op.(plan.SetClock); ok {
			s.prior = plan.UnsureClock(s.prior, clock)
		}
		s.tell(Event{Kind: StepFailed, Step: step, Number: number, Total: s.total, Took: f.took, Err: f.err})
		return s.write(Entry{Event: Failed, Step: step.ID, Error: f.err.Error()})
	}
	s.outcomes[f.index] = succeeded
	s.prior = plan.Fold(s.prior, step.Do.Op, f.made)
	s.tell(Event{Kind: StepDone, Step: step, Number: number, Total: s.total, Took: f.took})
	return s.write(Entry{Event: Done, Step: step.ID, Made: &f.made})
}

// finishedNumber counts the steps with an effect that have ended, this one
// included: what a person reads as [ 9/17].
func (s *schedule) finishedNumber() int {
	n := 1
	for i, step := range s.steps {
		if (s.outcomes[i] == succeeded || s.outcomes[i] == failed) && !plan.Bookkeeping(step.Do.Op) {
			n++
		}
	}
	return n
}

// undo takes back, in reverse, what the groups that failed have made.
func (s *schedule) undo(ctx context.Context) error {
	for n := range s.failures {
		f := &s.failures[n]
		f.Undone = true
		for i := len(s.steps) - 1; i >= 0; i-- {
			step := s.steps[i]
			if step.Group != f.Step.Group || s.outcomes[i] != succeeded || plan.Bookkeeping(step.Do.Op) {
				continue
			}
			if step.Undo.Op == nil {
				f.Undone = false // a GPU's setting: destroy restores it
				continue
			}
			if err := s.undoStep(ctx, step); err != nil {
				if f.Left = err; !isUndoFailure(err) {
					return err
				}
				f.Undone = false
				break
			}
		}
	}
	return nil
}

// undoFailure is an undo that the world refused; any other error of undoStep is
// the journal's.
type undoFailure struct{ error }

func isUndoFailure(err error) bool {
	var refused undoFailure
	return errors.As(err, &refused)
}

func (s *schedule) undoStep(ctx context.Context, step plan.Step) error {
	id, op := step.ID+"/undo", step.Undo
	if err := s.write(Entry{Event: Started, Step: id, Op: &op}); err != nil {
		return err
	}
	made, err := s.act(ctx, op.Op, s.prior)
	if err != nil {
		s.tell(Event{Kind: UndoFailed, Step: step, Err: err})
		if err := s.write(Entry{Event: Failed, Step: id, Error: err.Error()}); err != nil {
			return err
		}
		return undoFailure{fmt.Errorf("%s: %w", step.Title, err)}
	}
	s.prior = plan.Fold(s.prior, op.Op, made)
	s.tell(Event{Kind: UndoDone, Step: step})
	return s.write(Entry{Event: Done, Step: id, Made: &made})
}

func (s *schedule) result(ctx context.Context) Result {
	r := Result{Prior: s.prior, Failures: s.failures, Interrupted: ctx.Err() != nil}
	for i, step := range s.steps {
		switch s.outcomes[i] {
		case succeeded:
			r.Done = append(r.Done, step.ID)
		case pending:
			r.NotTried = append(r.NotTried, step)
		}
	}
	return r
}

func (r *Run) tell(e Event) {
	if r.Progress != nil {
		r.Progress(e)
	}
}

func (r *Run) write(e Entry) error {
	e.Time = time.Now()
	return r.Journal.Write(e)
}
