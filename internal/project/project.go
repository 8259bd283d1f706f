// Package project is one folder with its configuration, its state and its
// hosts, taken through the pipeline: read, observe, resolve, compare, plan,
// apply. It prints nothing.
package project

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/machine"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
	"cosplay/internal/state"
)

// Project is an open project. Close ends its agents.
type Project struct {
	Dir     string // absolute
	Intent  *config.Intent
	Store   state.Store
	Machine *machine.Machine
	Unnamed string          // the host that no configuration names, with OpenForRecovery
	Notes   []resource.Note // what recovery found of a run that was cut off

	Waiting func(*durable.Holder) // told who holds the lock, when it takes long to get; may be nil

	lock   *durable.Lock
	inputs []config.Input // values of variables
	find   Finder
	once   bool // its folder is made for it alone

	mayMiss, hostsMayMiss bool // variables may be without a value, also where hosts need them
}

// Close ends the agents and releases the lock.
func (p *Project) Close() error {
	p.Machine.Close()
	return p.Unlock()
}

// room is what carrying out a plan needs on the disk.
func room(planned *plan.Plan) state.Room {
	if planned.Destroys {
		return state.RoomToDestroy(len(planned.Steps))
	}
	return state.RoomToApply(len(planned.Steps))
}

// Lock takes the state's lock for a command that changes things, waiting for at
// most the given time.
func (p *Project) Lock(ctx context.Context, command string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if p.once {
		if err := os.MkdirAll(filepath.Dir(p.Store.Path), 0o700); err != nil {
			return fmt.Errorf("making a folder for the state: %w; --chdir names another folder to run in", err)
		}
	}
	if err := p.Store.Writable(state.RoomToDestroy(0)); err != nil { // what more a plan needs, the plan knows
		return err
	}
	lock, err := durable.Acquire(ctx, p.Store.LockPath(), command, p.Waiting)
	if err != nil {
		return err
	}
	p.lock, p.Machine.Hold = lock, lock.File()
	durable.Sweep(p.Store.Path)
	return nil
}

// Locked reports whether the project has the lock: then a plan is about to be carried out.
func (p *Project) Locked() bool { return p.lock != nil }

// Unlock releases the lock, if the project has it.
func (p *Project) Unlock() error {
	if p.lock == nil {
		return nil
	}
	lock := p.lock
	p.lock, p.Machine.Hold = nil, nil
	return lock.Release()
}

// StaleError refuses a plan that no longer rests on the world as it is.
type StaleError struct{ What string }

func (e *StaleError) Error() string {
	return "the plan is stale: " + e.What + ". Nothing was touched. Run cosplay plan again"
}

// Restore works a saved plan out again, with the key of the state that it rests on.
// With an error the plan is empty.
func (p *Project) Restore(saved plan.Saved) (*plan.Plan, error) {
	prior, err := p.Store.Load()
	if err == nil {
		err = p.sameState(saved.Basis, prior)
	}
	if err != nil {
		return &plan.Plan{}, err
	}
	planned, err := saved.Plan(prior.Key)
	if err != nil {
		return &plan.Plan{}, fmt.Errorf("%w. Nothing was touched. Run cosplay plan again", err)
	}
	return planned, nil
}

// sameState makes sure that a plan rests on the state of this project.
func (p *Project) sameState(basis plan.Basis, prior resource.Prior) error {
	switch {
	case basis.State != p.Store.Path:
		return &StaleError{"it was made for another project, with its state in " + basis.State}
	case basis.Lineage == "" && prior.Lineage != "":
		return &StaleError{"a first state has been written since it was made"}
	case prior.Lineage != basis.Lineage:
		return &StaleError{"the state has been replaced since it was made"}
	}
	return nil
}

// Fresh reads the hosts again and compares with what a plan rests on.
func (p *Project) Fresh(ctx context.Context, planned *plan.Plan) (resource.Prior, resource.Live, error) {
	prior, live, err := p.Refresh(ctx)
	if err != nil {
		return prior, live, err
	}
	if planned.Destroys && !planned.Partial {
		prior = salvage.Regained(prior, live)
	}
	now := plan.NewBasis(prior, live)
	if err := p.sameState(planned.Basis, prior); err != nil {
		return prior, live, err
	}
	switch {
	case now.Serial != planned.Basis.Serial:
		return prior, live, &StaleError{fmt.Sprintf("the state has moved from serial %d to %d since it was made", planned.Basis.Serial, now.Serial)}
	case now.Live != planned.Basis.Live:
		return prior, live, &StaleError{"GPUs, slices or sessions have been changed since it was made"}
	}
	return prior, live, p.sameOutputs(planned, prior, live)
}

// Apply carries a plan out, under the lock that the caller took with Lock, and
// saves what came of it. The result is true also with an error.
func (p *Project) Apply(ctx context.Context, planned *plan.Plan, prior resource.Prior, live resource.Live, o ApplyOptions) (apply.Result, error) {
	if prior.Lineage == "" {
		prior.Lineage, prior.Key = state.NewLineage(), cmp.Or(planned.Key, state.NewKey())
	}
	planned, err := p.unseal(planned, prior.Key)
	if err != nil {
		return apply.Result{Prior: prior}, err
	}
	if err := p.Store.Writable(room(planned)); err != nil {
		return apply.Result{Prior: prior}, err
	}
	journal, err := durable.CreateJournal(p.Store.JournalPath())
	if err != nil {
		return apply.Result{}, err
	}
	defer journal.Close()
	run := apply.Run{Hosts: map[string]apply.Host{}, Journal: journal, Progress: o.Progress, Parallelism: o.Parallelism, KeepPartial: o.KeepPartial, GoOn: planned.Destroys,
		Look: func(ctx context.Context) (resource.Live, error) { return p.observe(ctx, prior) }}
	holder := p.Holder(prior.Lineage)
	holder.Serial = prior.Serial + 1
	for name, h := range p.Machine.Hosts() {
		run.Hosts[name] = h.ForApply(prior.Owner(), holder)
	}
	result, err := run.Execute(ctx, planned, prior, live)
	if err != nil {
		return result, fmt.Errorf("%w; the run was stopped. What it did is found and taken over by the next command", err)
	}
	result.Prior = p.noteOutputs(planned, result.Prior, live)
	if !o.Partial {
		result.Prior.LastRun = result.Prior.Serial + 1
	}
	if result.Prior, err = p.Store.Save(result.Prior); err != nil {
		return result, fmt.Errorf("%w; what was done is in %s and is taken over by the next command", err, p.Store.JournalPath())
	}
	if err := p.Readdress(result.Prior, moves(planned.Steps)); err != nil {
		return result, err
	}
	return result, durable.Remove(p.Store.JournalPath())
}

// ApplyOptions steer a run.
type ApplyOptions struct {
	Progress    func(apply.Event)
	Parallelism int
	KeepPartial bool
	Partial     bool // the hosts may have more on record than the state has
}
