// Package apply carries a plan out and decides nothing: it journals, acts,
// undoes what a failure leaves half made, and stops when told to.
package apply

import (
	"context"
	"fmt"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/ledger"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// GPUs changes the GPUs of one host. Every change is read back by the one who makes it.
type GPUs interface {
	// Take, Leave and Release keep the host's ledger: who holds the GPU, with what it was like before.
	Take(ctx context.Context, gpu string, t ledger.Take) error
	Leave(ctx context.Context, gpu string) error
	Release(ctx context.Context, gpu string, asItIs, abandon bool) error

	Set(ctx context.Context, gpu string, s resource.Setting, value int) (now int, err error) // what the driver rounded it to
	CreateSlice(ctx context.Context, s resource.Slice, need resource.Need) (resource.LiveSlice, error)
	DestroySlice(ctx context.Context, s resource.LiveSlice) error
}

// Runtime makes and removes the containers of one host. Both are idempotent.
type Runtime interface {
	// Prepare makes the container of a session, or brings it up to date. given is
	// its MIG slice; of a whole GPU it has the UUID alone.
	Prepare(ctx context.Context, s resource.Session, given resource.Handle) (resource.Body, error)
	// Unprepare removes it by the session's id, and tells what it used, which goes
	// with it; one that is gone is no error, and used nothing.
	Unprepare(ctx context.Context, session string) (resource.Use, error)
}

// Images gets the images that containers are made from.
type Images interface {
	// Ensure pulls an image, or builds cosplay's own, and tells how far it is.
	Ensure(ctx context.Context, image string, how plan.ImageSource, say func(string)) error
}

// Host is what a run changes on one host.
type Host struct {
	GPUs     GPUs
	Runtimes map[string]Runtime // by name
	Images   Images             // nil without containers
}

// Journal keeps entries through a crash: each is on disk when Write returns.
type Journal interface{ Write(entry any) error }

// Entry is one line of the journal of a run.
type Entry struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`

	// With Begin: the state that the run started from, and what was there before.
	Lineage string               `json:"lineage,omitempty"`
	Key     string               `json:"key,omitempty"`
	Serial  int                  `json:"serial,omitempty"`
	BootIDs map[string]string    `json:"boot_ids,omitempty"`
	Slices  []resource.LiveSlice `json:"slices,omitempty"` // the MIG slices there were that are not ours
	Creates []resource.Address   `json:"creates,omitempty"`

	// With Started and Done.
	Step string       `json:"step,omitempty"`
	Op   *plan.OpJSON `json:"op,omitempty"` // with Started, and with Done of mere bookkeeping
	Made *plan.Made   `json:"made,omitempty"`

	// With Failed; Made is what is known to be left of a slice.
	Error string `json:"error,omitempty"`
	Sure  bool   `json:"sure,omitempty"` // what is left is known, even if it is nothing
}

// Partial is what an error of CreateSlice may know: the GPU instance that is
// left, nil for none; and whether it knows at all.
type Partial interface {
	Left() (left *resource.Handle, sure bool)
}

// The events.
const (
	Begin   = "begin"
	Started = "started"
	Done    = "done"
	Failed  = "failed"
)

// Event is progress, for people.
type Event struct {
	Kind   EventKind
	Step   plan.Step
	Number int // of the steps that touch the world, from 1
	Total  int
	Took   time.Duration
	Err    error
	Text   string // with StepSays: how far it is

	Live resource.Live // what the plan was made on
}

// EventKind says what happened to a step.
type EventKind int

// The kinds of progress.
const (
	StepStarted EventKind = iota
	StepSays
	StepDone
	StepFailed
	UndoDone
	UndoFailed
)

// Run is one carrying out of a plan.
type Run struct {
	Hosts       map[string]Host
	Journal     Journal
	Progress    func(Event)
	Parallelism int  // steps at a time, on GPUs and in containers each; 1 is one in all
	KeepPartial bool // leave what a failed session has so far
	GoOn        bool // after a failure, with every step that does not need the failed one

	// Observe reads the hosts: after a failure, only they show how far a step came.
	Observe func(context.Context) (resource.Live, error)
}

// Result is what came of it. Prior is true however the run ended.
type Result struct {
	Prior       resource.Prior
	Done        []string // ids of the steps that succeeded
	Failures    []Failure
	NotTried    []plan.Step
	Interrupted bool
	Used        map[resource.Address]resource.Use // what the sessions used that have ended
}

// Failure is a step that failed, and what its undo left.
type Failure struct {
	Step   plan.Step
	Err    error
	Undone bool       // nothing that its group did in this run is left
	Left   *UndoError // why something is, where it should not
}

// UndoError is the undo of a step that the host refused.
type UndoError struct {
	Step plan.Step
	Err  error
}

func (e *UndoError) Error() string { return e.Step.ID + ": " + e.Err.Error() }

func (e *UndoError) Unwrap() error { return e.Err }

// effect is act, between two moments at which a crash must do no harm.
func (r *Run) effect(ctx context.Context, op plan.Op, prior resource.Prior, say func(string)) (plan.Made, error) {
	durable.Moment("before effect %T", op)
	made, err := r.act(ctx, op, prior, say)
	durable.Moment("after effect %T", op)
	return made, err
}

// act makes one operation happen and says how far it is where that takes long. prior is the state so far: what is
// removed is looked up there, for only what is ours is ever removed.
func (r *Run) act(ctx context.Context, op plan.Op, prior resource.Prior, say func(string)) (plan.Made, error) {
	if host, change := gpuChange(ctx, op); change != nil {
		return plan.Made{}, r.gpus(host, change)
	}
	switch op := op.(type) {
	case plan.SetGPU:
		if _, held := prior.GPU(op.Host, op.GPU); !held {
			return plan.Made{}, prose.Advice{What: fmt.Sprintf("%s is to be changed, but the state does not have its baseline: cosplay did not make this plan", op.GPU), Fix: "make a new plan with cosplay plan"}
		}
		return r.set(ctx, op)
	case plan.CreateSlice:
		var made resource.LiveSlice
		err := r.gpus(op.Session.Slice.Host, func(g GPUs) (err error) {
			made, err = g.CreateSlice(ctx, op.Session.Slice, resource.Need{SMs: op.Session.Fit.Got.SMs, MemoryMiB: op.Session.Target.MemoryMiB})
			return err
		})
		return plan.Made{Handle: &made.Handle}, err
	case plan.DestroySlice:
		s, ok := prior.Session(op.Address)
		if !ok || s.Handle == nil {
			return plan.Made{}, nil
		}
		return plan.Made{}, r.gpus(op.Slice.Host, func(g GPUs) error {
			return g.DestroySlice(ctx, resource.LiveSlice{Slice: op.Slice, Handle: *s.Handle})
		})
	case plan.EnsureImage:
		host, err := r.host(op.Host)
		if err != nil {
			return plan.Made{}, err
		}
		if host.Images == nil {
			return plan.Made{}, fmt.Errorf("host %s has no container engine; Fix: cosplay plan", op.Host)
		}
		return plan.Made{}, host.Images.Ensure(ctx, op.Image, op.How, say)
	case plan.Prepare:
		runtime, err := r.runtime(op.Session.Slice.Host, op.Session.Runtime)
		if err != nil {
			return plan.Made{}, err
		}
		given := resource.Handle{UUID: op.Session.Slice.GPU, Shared: op.Shared}
		if s, ok := prior.Session(op.Session.Address); ok && s.Handle != nil && !op.Session.Slice.Whole() {
			given = *s.Handle
		}
		container, err := runtime.Prepare(ctx, op.Session, given)
		return plan.Made{Body: &container}, err
	case plan.Unprepare:
		runtime, err := r.runtime(op.Host, op.Runtime)
		if err != nil {
			return plan.Made{}, err
		}
		used, err := runtime.Unprepare(ctx, op.ID)
		return plan.Made{Used: &used}, err
	case plan.TakeGPU, plan.LeaveGPU, plan.ReleaseGPU: // gpuChange has them
	case plan.HoldGPU, plan.DoubtClock, plan.NoteBoot, plan.Record, plan.Adopt, plan.Forget, plan.MoveSessions: // the state alone
		return plan.Made{}, nil
	}
	return plan.Made{}, fmt.Errorf("no way to carry out %T", op)
}

// set sets a setting and returns what the driver rounded its value to.
func (r *Run) set(ctx context.Context, op plan.SetGPU) (plan.Made, error) {
	var now int
	err := r.gpus(op.Host, func(g GPUs) (err error) {
		now, err = g.Set(ctx, op.GPU, op.Setting, op.Value)
		return err
	})
	switch {
	case err != nil || now == op.Value:
		return plan.Made{}, err
	case op.Restore:
		return plan.Made{}, fmt.Errorf("the driver rounds the %s of %s from %s to %s, so that it is not as cosplay found it", op.Setting.Words(), op.GPU, op.Setting.Text(op.Value), op.Setting.Text(now))
	}
	return plan.Made{PowerMW: &now}, nil
}

// gpuChange is what an operation writes about a GPU into the host's ledger; nil for any other.
func gpuChange(ctx context.Context, op plan.Op) (host string, change func(GPUs) error) {
	switch op := op.(type) {
	case plan.TakeGPU:
		take := ledger.Take{Baseline: op.Baseline, LockBefore: op.LockBefore, FromState: op.FromState, Whole: op.Whole, Others: op.Others, Slices: op.Slices}
		return op.Host, func(g GPUs) error { return g.Take(ctx, op.GPU, take) }
	case plan.LeaveGPU:
		return op.Host, func(g GPUs) error { return g.Leave(ctx, op.GPU) }
	case plan.ReleaseGPU:
		return op.Host, func(g GPUs) error { return g.Release(ctx, op.GPU, op.AsItIs, op.Abandon) }
	default:
		return "", nil
	}
}

func (r *Run) gpus(host string, do func(GPUs) error) error {
	h, err := r.host(host)
	if err != nil {
		return err
	}
	return do(h.GPUs)
}

func (r *Run) runtime(host, name string) (Runtime, error) {
	h, err := r.host(host)
	if err != nil {
		return nil, err
	}
	runtime, ok := h.Runtimes[name]
	if !ok {
		return nil, fmt.Errorf("host %s has no runtime %q; Fix: cosplay plan", host, name)
	}
	return runtime, nil
}

func (r *Run) host(name string) (Host, error) {
	h, ok := r.Hosts[name]
	if !ok {
		return Host{}, fmt.Errorf("host %q is not open; it is in the state but no longer in the configuration: put its block back until its sessions are destroyed", name)
	}
	return h, nil
}
