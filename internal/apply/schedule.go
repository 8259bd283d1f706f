package apply

import (
	"context"
	"slices"
	"time"

	"cosplay/internal/diff"
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

// schedule is the progress of one run. A single goroutine owns it.
type schedule struct {
	*Run
	steps    []plan.Step
	outcomes []outcome
	queue    *queue
	before   resource.Prior // the state before the run
	prior    resource.Prior // the state so far, which is changed in place
	begin    Entry
	total    int
	number   int // steps that have started and change more than the state
	ended    int // of these
	failures []Failure
	used     map[resource.Address]resource.Use
	live     resource.Live
	reports  chan finished
	entries  []any // for the journal, which has them before the next step starts
}

// Execute carries out the steps. When the context ends, it starts no step and waits for those that run. live is the
// snapshot of the plan.
func (r *Run) Execute(ctx context.Context, p *plan.Plan, prior resource.Prior, live resource.Live) (Result, error) {
	prior = prior.Clone()
	begin := Entry{Event: Begin, Lineage: prior.Lineage, Key: prior.Key, Serial: prior.Serial, BootIDs: map[string]string{},
		Creates: plan.Creates(p.Steps)}
	placements := prior.Placements()
	for _, h := range live.Hosts {
		begin.BootIDs[h.Name] = h.BootID
		for _, g := range h.GPUs {
			begin.Slices = append(begin.Slices, diff.Foreign(g, placements)...)
		}
	}
	if err := r.write(begin); err != nil {
		return Result{Prior: prior}, err
	}
	s := &schedule{Run: r, steps: p.Steps, outcomes: make([]outcome, len(p.Steps)), queue: newQueue(p.Steps, r.Parallelism),
		used: map[resource.Address]resource.Use{}, before: prior, prior: prior.Clone(), live: live, begin: begin, total: p.Effects(),
		reports: make(chan finished)}
	err := s.loop(ctx)
	if err == nil && len(s.failures) > 0 {
		err = s.cleanUp(context.WithoutCancel(ctx))
	}
	return s.result(ctx), err
}

// loop starts every step whose needs have succeeded, until no step is left, one fails without GoOn, or the context
// ends. Then it waits for the steps that run.
func (s *schedule) loop(ctx context.Context) error {
	active := 0
	for {
		var next []int
		for (s.GoOn || len(s.failures) == 0) && ctx.Err() == nil {
			i, ok := s.queue.next()
			if !ok {
				break
			}
			if s.announce(i) {
				next = append(next, i)
			}
		}
		if err := s.Journal.Write(s.entries...); err != nil {
			return s.drain(active, err)
		}
		s.entries = s.entries[:0]
		for _, i := range next {
			s.start(s.lasting(ctx, i), i)
		}
		if active += len(next); active == 0 {
			return nil
		}
		active -= s.collect()
	}
}

// collect waits for a step, notes how it ended, and likewise all others that have ended by then: one write to disk
// serves them all. It returns how many there were.
func (s *schedule) collect() (count int) {
	s.finish(<-s.reports)
	for count = 1; ; count++ {
		select {
		case f := <-s.reports:
			s.finish(f)
		default:
			return count
		}
	}
}

func (s *schedule) note(e Entry) {
	e.Time = time.Now()
	s.entries = append(s.entries, e)
}

// lasting is the context of a step. A step that has begun is finished, unless it only gets an image: that can take
// hours, and the next run gets it again.
func (s *schedule) lasting(ctx context.Context, i int) context.Context {
	if _, image := s.steps[i].Do.Op.(plan.EnsureImage); image {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// drain waits for running steps after the journal could not be written, and folds what they made, so that the state
// has it.
func (s *schedule) drain(active int, cause error) error {
	for range active {
		f := <-s.reports
		if f.err == nil {
			plan.FoldInto(&s.prior, s.steps[f.index].Do.Op, f.made)
			s.outcomes[f.index] = succeeded
		}
	}
	return cause
}

// announce notes that a step is started next. A step that changes the state alone is done at once, and announce returns
// false.
func (s *schedule) announce(i int) bool {
	step := s.steps[i]
	op := step.Do
	if plan.Bookkeeping(op.Op) {
		s.ends(i, succeeded)
		made := plan.Made{At: moment(op.Op, time.Now())}
		plan.FoldInto(&s.prior, op.Op, made)
		entry := Entry{Event: Done, Step: step.ID, Op: &op}
		if made.At != 0 {
			entry.Made = &made
		}
		s.note(entry)
		return false
	}
	s.note(Entry{Event: Started, Step: step.ID, Op: &op})
	return true
}

func (s *schedule) start(ctx context.Context, i int) {
	step := s.steps[i]
	s.outcomes[i] = running
	s.number++
	s.tell(Event{Kind: StepStarted, Step: step, Number: s.number, Total: s.total})
	prior, say := plan.Part(s.prior, step.Do.Op), s.says(step)
	go func() {
		begun := time.Now()
		made, err := s.effect(ctx, step.Do.Op, prior, say)
		s.reports <- finished{index: i, made: made, err: err, took: time.Since(begun)}
	}()
}

func (s *schedule) finish(f finished) {
	step := s.steps[f.index]
	s.ended++
	if f.err != nil {
		s.ends(f.index, failed)
		s.failures = append(s.failures, Failure{Step: step, Err: f.err})
		s.tell(Event{Kind: StepFailed, Step: step, Number: s.ended, Total: s.total, Took: f.took, Err: f.err})
		s.note(failure(step.ID, f.err))
		return
	}
	s.ends(f.index, succeeded)
	plan.FoldInto(&s.prior, step.Do.Op, f.made)
	if op, ended := step.Do.Op.(plan.Unprepare); ended && f.made.Used != nil {
		s.used[op.Address] = *f.made.Used
	}
	s.tell(Event{Kind: StepDone, Step: step, Number: s.ended, Total: s.total, Took: f.took})
	s.note(Entry{Event: Done, Step: step.ID, Made: &f.made})
}

func (s *schedule) ends(i int, as outcome) {
	s.outcomes[i] = as
	s.queue.ended(i, as == succeeded)
}

// replaced are the sessions that the run had to create and that existed before it. The result lists the others that
// it did not create.
func (s *schedule) replaced() []resource.Address {
	return slices.DeleteFunc(slices.Clone(s.begin.Creates), func(a resource.Address) bool {
		_, before := s.before.Session(a)
		return !before
	})
}

func (s *schedule) result(ctx context.Context) Result {
	r := Result{Prior: plan.Ended(s.prior, s.replaced()), Failures: s.failures, Interrupted: ctx.Err() != nil, Used: s.used}
	for i, step := range s.steps {
		switch s.outcomes[i] {
		case succeeded:
			r.Done = append(r.Done, step.ID)
		case pending:
			r.NotTried = append(r.NotTried, step)
		case running, failed: // a failure has its own list
		}
	}
	return r
}

func (s *schedule) tell(e Event) {
	if e.Live = s.live; s.Progress != nil {
		s.Progress(e)
	}
}

// says is the function with which the goroutine of a step reports progress.
func (s *schedule) says(step plan.Step) func(string) {
	number, total := s.number, s.total
	return func(text string) { s.tell(Event{Kind: StepSays, Step: step, Number: number, Total: total, Text: text}) }
}

func (r *Run) write(e Entry) error {
	e.Time = time.Now()
	return r.Journal.Write(e)
}
