// Package project runs the pipeline for one folder with its configuration, state and
// hosts: read, observe, resolve, compare, plan, apply. It prints nothing.
package project

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
	"cosplay/internal/state"
)

// Project is an open project. Close ends its agents.
type Project struct {
	Files
	Fleet
	Unnamed string          // the host that no configuration names, with OpenForRecovery
	Notes   []resource.Note // what recovery found of an interrupted run

	Wait time.Duration // for a run under way, of a command without the lock; 0 is RecoveryWait

	options Options         // that it was opened with
	inputs  []config.Input  // values of variables
	silent  map[string]bool // hosts whose engine did not answer when the run began
	queued  bool            // it waits for its turn, or has it
	turn    *Turn           // nil before that

	timestamp string // the value of plantimestamp()
}

// Close ends the agents and releases the lock.
func (p *Project) Close() error {
	p.Machine.Close()
	p.handOver()
	return p.Unlock()
}

// room is the disk space that an apply of a plan needs.
func room(planned *plan.Plan) state.Room {
	if planned.Destroys {
		return state.RoomToDestroy(len(planned.Steps))
	}
	return state.RoomToApply(len(planned.Steps))
}

// WithoutLock releases the lock and the GPUs until ask returns, and locks again if it returns no error: a user may take
// hours to answer.
func (p *Project) WithoutLock(ctx context.Context, wait time.Duration, ask func() error) error {
	command := p.command
	p.Machine.Rest()
	if err := cmp.Or(p.Unlock(), ask()); err != nil {
		return err
	}
	return p.Lock(ctx, command, wait)
}

// StaleError refuses a plan whose state or hosts have changed since it was made.
type StaleError struct {
	What    string
	By      []string // what cosplay has changed since then, and by which command
	Command string   // that makes the next plan; "" is plan
	Fix     string   // instead of the next plan
}

func (e *StaleError) Error() string {
	by := ""
	if len(e.By) > 0 {
		by = ". Since then " + strings.Join(e.By, "; ")
	}
	next := "Run cosplay " + cmp.Or(e.Command, "plan") + " again"
	if e.Fix != "" {
		next = "Fix: " + e.Fix + ". Or run" + strings.TrimPrefix(next, "Run")
	}
	return fmt.Sprintf("the plan is stale: %s%s. Nothing was changed. %s", e.What, by, next)
}

// Restore computes a saved plan again, with the key of its state. With an error the plan
// is empty.
func (p *Project) Restore(saved plan.Saved) (*plan.Plan, error) {
	prior, err := p.Store.Load()
	if err == nil {
		err = cmp.Or(p.sameState(saved.Basis, prior), p.sameConfig(saved.Basis, cmp.Or(prior.Key, saved.Key)))
	}
	if err != nil {
		return &plan.Plan{}, err
	}
	planned, err := saved.Plan(prior.Key)
	if err != nil {
		return &plan.Plan{}, fmt.Errorf("%w. Nothing was changed. Run cosplay plan again", err)
	}
	return planned, nil
}

// sameState checks that a plan was made from the state of this project.
func (f *Files) sameState(basis plan.Basis, prior resource.Prior) error {
	switch {
	case basis.State != f.Store.Path:
		return &StaleError{What: "it was made for another project, whose state is " + basis.State}
	case basis.Lineage == "" && prior.Lineage != "":
		return &StaleError{What: "a first state has been written since it was made"}
	case prior.Lineage != basis.Lineage:
		return &StaleError{What: "the state has been replaced since it was made"}
	}
	return nil
}

// Fresh reads the hosts again, and returns an error if they differ from what the plan was
// made from.
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
		return prior, live, &StaleError{What: fmt.Sprintf("the state has moved from serial %d to %d since it was made", planned.Basis.Serial, now.Serial)}
	case now.Live.Hash() != planned.Basis.Live.Hash() && !live.AllReached():
		return prior, live, &StaleError{What: fmt.Sprintf("the hosts were not all read as they were then: %v", live.Unreached())}
	case now.Live.Hash() != planned.Basis.Live.Hash():
		return prior, live, &StaleError{What: "GPUs, slices or sessions have been changed since it was made"}
	}
	err = cmp.Or(p.sameOutputs(planned, prior, live), p.sameConfig(planned.Basis, cmp.Or(prior.Key, planned.Key)))
	return prior, live, err
}

// Apply runs a plan under the lock, which the caller has taken, and saves the state. The
// result is valid also with an error.
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
	p.silent = map[string]bool{}
	for _, h := range live.Hosts {
		p.silent[h.Name] = h.Silent != ""
	}
	imported := withImported(prior, planned)
	run := apply.Run{Hosts: map[string]apply.Host{}, Journal: journal, Progress: o.Progress, Parallelism: o.Parallelism, KeepPartial: o.KeepPartial, GoOn: planned.Destroys,
		Audit: p.Audit(prior.Lineage), Observe: func(ctx context.Context) (resource.Live, error) { return p.observe(ctx, imported) }}
	holder := p.Holder(prior.Lineage)
	holder.Serial = prior.Serial + 1
	for name, h := range p.Machine.Hosts() {
		run.Hosts[name] = h.ForApply(imported.Owner(), holder)
	}
	result, err := run.Execute(ctx, planned, prior, live)
	if err != nil {
		return result, fmt.Errorf("%w; the run was stopped. The next command finds what it did and adds it to the state", err)
	}
	result.Prior = p.noteOutputs(planned, result.Prior, live)
	if !o.Partial {
		result.Prior.LastRun = result.Prior.Serial + 1
	}
	if result.Prior, err = p.Store.Save(result.Prior); err != nil {
		return result, fmt.Errorf("%w; %s has what was done, and the next command adds it to the state", err, p.Store.JournalPath())
	}
	p.forgetActivity(result.Prior)
	p.RemoveShared(result.Prior)
	if err := p.Readdress(result.Prior, moves(planned.Steps, func(s plan.Step) *plan.OpJSON { return &s.Do })); err != nil {
		return result, err
	}
	return result, durable.Remove(p.Store.JournalPath())
}

// ApplyOptions control a run.
type ApplyOptions struct {
	Progress    func(apply.Event)
	Parallelism int
	KeepPartial bool
	Partial     bool // the hosts may have more objects of the project than the state
}

// unseal sets the sensitive values of a plan's sessions from the configuration: a saved
// plan has only their hashes. The hashes are made with the state's key, or before the
// first apply with the key that the state will have.
func (l *Fleet) unseal(planned *plan.Plan, key string) (*plan.Plan, error) {
	return planned.WithSessions(func(s resource.Session) (resource.Session, error) {
		if len(s.Sealed) == 0 {
			return s, nil
		}
		key := key
		if c := l.Intent.Host(s.Slice.Host); c != nil {
			key = l.Machine.KeyOn(*c, key)
		}
		if len(s.Secret) > 0 {
			return s.Seal(key), nil
		}
		configured := l.Intent.Session(s.Address)
		if configured == nil {
			return s, &StaleError{What: fmt.Sprintf("%s and its sensitive values are not in the configuration any more", s.Address)}
		}
		s.Secret = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(s.Sealed)) {
			value, there := configured.Secret[name]
			if !there {
				return s, &StaleError{What: fmt.Sprintf("the sensitive env.%s of %s is not in the configuration any more", name, s.Address)}
			}
			s.Secret[name] = value
		}
		now := s.Seal(key)
		for name, seal := range s.Sealed {
			if seal != "" && seal != now.Sealed[name] {
				return s, l.otherValue(fmt.Sprintf("the sensitive env.%s of %s", name, s.Address))
			}
		}
		return now, nil
	})
}
