// Package apply carries out a plan and decides nothing: it writes the journal, runs the steps, undoes what a failure
// leaves incomplete, and stops when its context ends.
package apply

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"cosplay/internal/ledger"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// GPUs changes the GPUs of one host. It reads every change back.
type GPUs interface {
	// Take, Leave and Release write the host's ledger: who holds the GPU, with its baseline.
	Take(ctx context.Context, gpu string, t ledger.Take) error
	Leave(ctx context.Context, gpu string) error
	Release(ctx context.Context, gpu string, asItIs, abandon bool) error

	Set(ctx context.Context, gpu string, s resource.Setting, value int) (now int, err error) // what the driver rounded it to
	CreateSlice(ctx context.Context, s resource.Slice, need resource.Need) (resource.LiveSlice, error)
	DestroySlice(ctx context.Context, s resource.LiveSlice) error
}

// Runtime creates and removes the bodies of one host. Both are idempotent.
type Runtime interface {
	// Prepare creates the body of a session, or brings it up to date. given is its MIG slice; of a whole GPU it has
	// the UUID alone.
	Prepare(ctx context.Context, s resource.Session, given resource.Handle) (resource.Body, error)
	// Unprepare removes the body by the session's ID, and returns what the session used. A body that does not exist
	// is no error, and used nothing.
	Unprepare(ctx context.Context, session string) (resource.Use, error)
}

// Stopper stops and starts bodies that exist. Both are idempotent.
type Stopper interface {
	// Stop ends the programs of a session.
	Stop(ctx context.Context, session string) error
	// Start starts the body of a session as it is, and waits until it can be used.
	Start(ctx context.Context, s resource.Session) (resource.Body, error)
}

// Ender ends the programs of a session whose lifetime has ended: a message on their terminals, SIGTERM, and SIGKILL for
// those that still run after the grace period. A session without programs is no error.
type Ender interface {
	End(ctx context.Context, session, message string, grace time.Duration) error
}

// Farewell is the message for the terminals of a session that is ended.
func Farewell(op plan.EndSession) string {
	return fmt.Sprintf("%s has expired (%s). Its programs are ended now and killed after %s. Files in the workspace are kept.",
		op.Expired.Address, op.Expired.Why, op.Grace)
}

// Images gets the images of containers.
type Images interface {
	// Ensure pulls an image, or builds cosplay's, and reports progress.
	Ensure(ctx context.Context, image string, how plan.ImageSource, say func(string)) error
}

// MPS runs the control daemons of MPS on a host. Both are idempotent.
type MPS interface {
	// RunMPS starts the daemon of a GPU or a MIG slice by its UUID, unless it runs, and sets its defaults.
	RunMPS(ctx context.Context, uuid string, m resource.MPS) error
	// StopMPS ends a daemon with its servers, and removes its folder.
	StopMPS(ctx context.Context, m resource.MPS) error
}

// Host is what a run changes on one host.
type Host struct {
	GPUs     GPUs
	MPS      MPS
	Runtimes map[string]Runtime // by name
	Images   Images             // nil without containers
}

// Journal keeps entries through a crash: entries are on disk when Write returns.
type Journal interface{ Write(entries ...any) error }

// Entry is one line of the journal of a run.
type Entry struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`

	// With Begin: the state from which the run started, and what existed before.
	Lineage string               `json:"lineage,omitempty"`
	Key     string               `json:"key,omitempty"`
	Serial  int                  `json:"serial,omitempty"`
	BootIDs map[string]string    `json:"boot_ids,omitempty"`
	Slices  []resource.LiveSlice `json:"slices,omitempty"` // the foreign MIG slices that existed
	Creates []resource.Address   `json:"creates,omitempty"`

	// With Started and Done.
	Step string       `json:"step,omitempty"`
	Op   *plan.OpJSON `json:"op,omitempty"` // with Started, and with Done of an operation on the state alone
	Made *plan.Made   `json:"made,omitempty"`

	// With Failed; Made is what is known to be left of a slice.
	Error string `json:"error,omitempty"`
	Sure  bool   `json:"sure,omitempty"` // it is known what is left, even if it is nothing
}

// Partial is implemented by an error of CreateSlice: the GPU instance that is left, nil for none, and whether that is
// known.
type Partial interface {
	Left() (left *resource.Handle, sure bool)
}

const (
	Begin   = "begin"
	Started = "started"
	Done    = "done"
	Failed  = "failed"
)

// Event is progress, for output.
type Event struct {
	Kind   EventKind
	Step   plan.Step
	Number int // of the steps that change more than the state, from 1
	Total  int
	Took   time.Duration
	Err    error
	Text   string // with StepSays: the progress

	Live resource.Live // the snapshot of the plan
}

// EventKind is what happened to a step.
type EventKind int

const (
	StepStarted EventKind = iota
	StepSays
	StepDone
	StepFailed
	UndoDone
	UndoFailed
)

// Run carries out a plan.
type Run struct {
	Hosts       map[string]Host
	Journal     Journal
	Progress    func(Event)
	Parallelism int  // steps at the same time, on GPUs and on bodies each; slices of a GPU count once. 1 is one step of both together
	KeepPartial bool // do not undo the steps of a failed session
	GoOn        bool // after a failure, run every step that does not need the failed one

	// Audit gets each operation that changes more than the state, after it; steps run at the same time. It may be nil.
	Audit func(Effect)

	// Observe reads the hosts: after a failure, only they show what a step has changed.
	Observe func(context.Context) (resource.Live, error)
}

// Result is how a run ended. Prior is correct however it ended.
type Result struct {
	Prior       resource.Prior
	Done        []string // ids of the steps that succeeded
	Failures    []Failure
	NotTried    []plan.Step
	Interrupted bool
	Used        map[resource.Address]resource.Use // of sessions that have ended
}

// Failure is a step that failed, and what its undo left.
type Failure struct {
	Step   plan.Step
	Err    error
	Undone bool       // everything that its group did in this run is undone
	Left   *UndoError // the undo that failed
}

// UndoError is a failed undo of a step.
type UndoError struct {
	Step plan.Step
	Err  error
}

func (e *UndoError) Error() string { return e.Step.ID + ": " + e.Err.Error() }

func (e *UndoError) Unwrap() error { return e.Err }

// moment is when a session came up by an operation; 0 for another operation.
func moment(op plan.Op, now time.Time) resource.Moment {
	if !plan.BringsUp(op) {
		return 0
	}
	return resource.Moment(now.Unix())
}

// act carries out one operation, and reports progress if that takes long. What it removes is in prior, the state so
// far: only what the state has is ever removed.
func (r *Run) act(ctx context.Context, op plan.Op, prior resource.Prior, say func(string)) (made plan.Made, err error) {
	if plan.Bookkeeping(op) {
		return made, nil
	}
	name := Effect{Op: op}.Change().Host
	host, open := r.Hosts[name]
	switch {
	case !open:
		return made, fmt.Errorf("host %q is not open; it is in the state but no longer in the configuration: "+
			"put its block back until its sessions are destroyed", name)
	case onBody(op):
		return host.changeBody(ctx, name, op, prior, say)
	}
	return host.changeGPU(ctx, op, prior)
}

// changeGPU carries out an operation on a GPU or an MPS daemon.
func (h Host) changeGPU(ctx context.Context, op plan.Op, prior resource.Prior) (made plan.Made, err error) {
	switch op := op.(type) {
	case plan.TakeGPU:
		return made, h.GPUs.Take(ctx, op.GPU, ledger.Take{Baseline: op.Baseline, LockBefore: op.LockBefore, FromState: op.FromState, Stated: op.Stated, Changed: op.Changed,
			Whole: op.Whole, Others: op.Others, Slices: op.Slices})
	case plan.LeaveGPU:
		return made, h.GPUs.Leave(ctx, op.GPU)
	case plan.ReleaseGPU:
		return made, h.GPUs.Release(ctx, op.GPU, op.AsItIs, op.Abandon)
	case plan.SetGPU:
		if _, held := prior.GPU(op.Host, op.GPU); !held {
			what := op.GPU + " is to be changed, but the state does not have its baseline: cosplay did not make this plan"
			return made, prose.Advice{What: what, Fix: "make a new plan with cosplay plan"}
		}
		made.PowerMW, err = set(ctx, h.GPUs, op)
	case plan.RunMPS:
		return made, h.MPS.RunMPS(ctx, served(prior, op), op.MPS)
	case plan.StopMPS:
		return made, h.MPS.StopMPS(ctx, op.MPS)
	case plan.CreateSlice:
		need := resource.Need{SMs: cmp.Or(op.SMs, op.Session.Fit.Got.SMs), MemoryMiB: op.Session.Target.MemoryMiB, Beside: beside(prior, op.Beside)}
		slice, err := h.GPUs.CreateSlice(ctx, op.Session.Slice.Place(), need)
		return plan.Made{Handle: &slice.Handle}, err
	case plan.DestroySlice:
		s, _ := prior.Session(op.Address)
		if s.Handle == nil || plan.SharedByOther(prior, s) {
			return made, nil
		}
		if s.MPS != "" { // a slice that programs use cannot be destroyed
			err = h.MPS.StopMPS(ctx, resource.MPS{Folder: s.MPS})
		}
		if err == nil {
			err = h.GPUs.DestroySlice(ctx, resource.LiveSlice{Slice: op.Slice.Place(), Handle: *s.Handle})
		}
	default:
		err = fmt.Errorf("no way to carry out %T", op)
	}
	return made, err
}

// changeBody carries out an operation on the body of a session, or on its image.
func (h Host) changeBody(ctx context.Context, host string, op plan.Op, prior resource.Prior, say func(string)) (made plan.Made, err error) {
	switch op := op.(type) {
	case plan.EnsureImage:
		if h.Images == nil {
			return made, fmt.Errorf("host %s has no container engine; Fix: cosplay plan", op.Host)
		}
		return made, h.Images.Ensure(ctx, op.Image, op.How, say)
	case plan.Prepare:
		runtime, err := able[Runtime](h, host, op.Session.Runtime)
		if err != nil {
			return made, err
		}
		given := resource.Handle{UUID: op.Session.Slice.GPU}
		if s, _ := prior.Session(op.Session.Address); s.Handle != nil && !op.Session.Slice.Whole() {
			given = *s.Handle
		}
		given.Shared = op.Shared
		body, err := runtime.Prepare(ctx, op.Session, given)
		return plan.Made{Body: &body}, err
	case plan.Unprepare:
		runtime, err := able[Runtime](h, host, op.Runtime)
		if err != nil {
			return made, err
		}
		used, err := runtime.Unprepare(ctx, op.ID)
		return plan.Made{Used: &used}, err
	case plan.StopSession:
		stopper, err := able[Stopper](h, host, op.Runtime)
		if err != nil {
			return made, err
		}
		return made, stopper.Stop(ctx, op.ID)
	case plan.StartSession:
		stopper, err := able[Stopper](h, host, op.Runtime)
		if err != nil {
			return made, err
		}
		s, _ := prior.Session(op.Address)
		body, err := stopper.Start(ctx, s.Session)
		return plan.Made{Body: &body}, err
	case plan.EndSession:
		runtime, err := able[Runtime](h, host, op.Runtime)
		if ender, can := runtime.(Ender); err == nil && can {
			err = ender.End(ctx, op.ID, Farewell(op), time.Duration(op.Grace)*time.Second)
		}
		return made, err
	default:
		return made, fmt.Errorf("no way to carry out %T", op)
	}
}

// beside is the UUID of the compute instance of a session; "" for none.
func beside(prior resource.Prior, a *resource.Address) string {
	if a == nil {
		return ""
	}
	if s, _ := prior.Session(*a); s.Handle != nil {
		return s.Handle.UUID
	}
	return ""
}

// served is what an MPS daemon gives to its programs: GPUs, or the MIG slice that a session of the state has.
func served(prior resource.Prior, op plan.RunMPS) string {
	if op.MPS.GPUs != "" {
		return op.MPS.GPUs
	}
	for _, s := range prior.Sessions {
		if s.MPS == op.MPS.Folder && s.Handle != nil && op.MPS.Profile != "" {
			return s.Handle.UUID
		}
	}
	return op.GPU
}

// set sets a setting. It returns the value to which the driver rounded it, nil if it did not.
func set(ctx context.Context, on GPUs, op plan.SetGPU) (rounded *int, err error) {
	now, err := on.Set(ctx, op.GPU, op.Setting, op.Value)
	switch {
	case err != nil || now == op.Value:
		return nil, err
	case op.Restore:
		return nil, fmt.Errorf("the driver rounds the %s of %s from %s to %s, so that it is not as cosplay found it",
			op.Setting.Words(), op.GPU, op.Setting.Text(op.Value), op.Setting.Text(now))
	}
	return &now, nil
}

// able is a runtime of the host for what an operation needs.
func able[T any](h Host, host, name string) (able T, err error) {
	runtime, ok := h.Runtimes[name]
	if !ok {
		return able, fmt.Errorf("host %s has no runtime %q; Fix: cosplay plan", host, name)
	}
	able, can := runtime.(T)
	if !can {
		err = fmt.Errorf("sessions that run %s are not stopped or started. Fix: end the processes of cosplay exec", resource.RuntimeNamed(name).Where)
	}
	return able, err
}
