package project

import (
	"context"
	"fmt"
	"os"
	"time"

	"cosplay/internal/apply"
	"cosplay/internal/durable"
	"cosplay/internal/machine"
	"cosplay/internal/observe"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
)

// RecoveryWait is how long a command waits for a run under way to end, or for
// the last step of one that was killed.
const RecoveryWait = 10 * time.Second

// Refresh loads the state and looks at all hosts, so that both are of the same
// moment. A journal that is there tells of a run under way, which is waited for,
// or of one that was cut off, which is folded into the state.
func (p *Project) Refresh(ctx context.Context) (resource.Prior, resource.Live, error) {
	if p.lock == nil {
		prior, live, quiet, err := p.glance(ctx)
		if err == nil {
			err = p.RefuseCopy(prior)
		}
		if quiet && !salvage.Behind(prior, live) || err != nil {
			return prior, live, err
		}
		if err := p.Lock(ctx, "recovery", RecoveryWait); err != nil {
			return prior, live, err
		}
		defer func() { _ = p.Unlock() }()
	}
	prior, live, err := p.FoldJournal(ctx)
	if err == nil {
		err = p.RefuseCopy(prior)
	}
	if err == nil && salvage.Behind(prior, live) {
		return p.catchUp(ctx, prior, live)
	}
	return prior, live, err
}

// FoldJournal loads the state and looks at all hosts, under the lock, and folds the
// journal of an interrupted run into the state.
func (p *Project) FoldJournal(ctx context.Context) (resource.Prior, resource.Live, error) {
	prior, err := p.load()
	if err != nil {
		return prior, resource.Live{}, err
	}
	// Only now: what is seen must be what the cut-off run has left.
	live, err := p.observe(ctx, prior)
	if err != nil {
		return prior, live, err
	}
	if p.Unfinished() {
		prior, err = p.recover(prior, live)
	}
	return apply.Reconsider(prior, live), live, err
}

// glance reads without the lock. It is quiet when no run was under way in the
// meantime, so that state and world belong together.
func (p *Project) glance(ctx context.Context) (prior resource.Prior, live resource.Live, quiet bool, err error) {
	for range 3 {
		stamp := p.Store.Stamp()
		if p.Unfinished() {
			return prior, live, false, nil
		}
		if prior, err = p.load(); err != nil {
			return prior, live, false, err
		}
		if live, err = p.observe(ctx, prior); err != nil {
			if p.Unfinished() || p.Store.Stamp() != stamp {
				continue // it was being changed
			}
			return prior, live, false, err
		}
		if !p.Unfinished() && p.Store.Stamp() == stamp {
			return apply.Reconsider(prior, live), live, true, nil
		}
	}
	return prior, live, false, nil
}

// journal reads what a run under way, or one that was cut off, has written.
func (p *Project) journal() ([]apply.Entry, error) {
	path := p.Store.JournalPath()
	entries, err := durable.ReadJournal[apply.Entry](path)
	if err == nil && len(entries) > 0 {
		err = apply.CheckJournal(entries)
		if err != nil {
			err = fmt.Errorf("the journal %s is damaged: %w. Nothing was touched. Keep a copy, and bring back the file as it was; without it, cosplay reset puts the host back", path, err)
		}
	}
	return entries, err
}

// Unfinished reports whether a run is under way or was cut off.
func (p *Project) Unfinished() bool {
	_, err := os.Stat(p.Store.JournalPath())
	return err == nil
}

// load loads the state and makes sure that all hosts in it can be reached.
func (p *Project) load() (resource.Prior, error) {
	prior, err := p.Store.Load()
	if err != nil {
		return prior, err
	}
	return prior, p.knowsHosts(prior)
}

// observeMoving looks at hosts that a run is changing: what goes between two
// calls of the driver is looked at again.
func (p *Project) observeMoving(ctx context.Context, prior resource.Prior) (live resource.Live, err error) {
	for range 5 {
		if live, err = p.observe(ctx, prior); err == nil {
			return live, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return live, err
}

// Peek looks without waiting for anybody: while a run is under way, at how far
// it has come. Nothing is written.
func (p *Project) Peek(ctx context.Context) (Outlook, error) {
	prior, live, quiet, err := p.glance(ctx)
	if err != nil {
		return Outlook{}, err
	}
	if !quiet {
		if prior, err = p.load(); err != nil {
			return Outlook{}, err
		}
		if live, err = p.observeMoving(ctx, prior); err != nil {
			return Outlook{}, err
		}
		entries, err := p.journal()
		if err != nil {
			return Outlook{}, err
		}
		if len(entries) > 0 && entries[0].Serial == prior.Serial {
			prior, _ = apply.Recover(prior, entries, live)
		}
	}
	if salvage.Behind(prior, live) && !p.Unfinished() {
		if prior, _, err = p.caughtUp(ctx, prior, live); err != nil {
			return Outlook{}, err
		}
	}
	return Outlook{Prior: prior, Live: live, Plan: plan.Build(resource.Desired{}, prior, live, p.DiffOptions())}, nil
}

// knowsHosts makes sure that every host with something of ours can be reached.
func (p *Project) knowsHosts(prior resource.Prior) error {
	known := map[string]bool{}
	for _, h := range p.Intent.Hosts {
		known[h.Name] = true
	}
	missing := func(host, what string) error {
		return fmt.Errorf("the state has %s on host %q, which the configuration no longer names: put its host block back, run cosplay destroy, and remove it then", what, host)
	}
	for _, s := range prior.Sessions {
		if !known[s.Slice.Host] {
			return missing(s.Slice.Host, s.Address.String())
		}
	}
	for _, g := range prior.GPUs {
		if !known[g.Host] {
			return missing(g.Host, g.UUID)
		}
	}
	return nil
}

// recover folds the journal of a run that was cut off into the state.
func (p *Project) recover(prior resource.Prior, live resource.Live) (resource.Prior, error) {
	entries, err := p.journal()
	if err != nil {
		return prior, err
	}
	if len(entries) == 0 {
		return prior, durable.Remove(p.Store.JournalPath())
	}
	begin := entries[0]
	switch {
	case !continues(begin, prior):
		return prior, fmt.Errorf("the journal %s belongs to another state (lineage %s, serial %d) than %s (lineage %s, serial %d). Fix: restore the state that it belongs to, or run cosplay state rebuild",
			p.Store.JournalPath(), begin.Lineage, begin.Serial, p.Store.Path, prior.Lineage, prior.Serial)
	case prior.Lineage == begin.Lineage && prior.Serial == begin.Serial+1:
		// The state was written, only the journal was not yet removed.
		err = p.Readdress(prior, moved(entries))
	default:
		prior.Lineage, prior.Key = begin.Lineage, begin.Key
		next, notes := apply.Recover(prior, entries, live)
		p.Notes = append(p.Notes, notes...)
		next.LastRun = next.Serial + 1
		if prior, err = p.Store.Save(next); err != nil {
			return prior, err
		}
		err = p.Readdress(prior, moved(entries))
	}
	if err != nil {
		return prior, err
	}
	return prior, durable.Remove(p.Store.JournalPath())
}

// continues reports whether the run of a journal began with a state, or has written
// it.
func continues(begin apply.Entry, prior resource.Prior) bool {
	same := prior.Lineage == begin.Lineage
	return prior.Serial == begin.Serial && (same || prior.Lineage == "") || same && prior.Serial == begin.Serial+1
}

// StrandedJournal reports whether there is a journal that no command can fold into the
// state: a damaged one, or another state's.
func (p *Project) StrandedJournal(prior resource.Prior) bool {
	entries, err := p.journal()
	return err != nil || len(entries) > 0 && !continues(entries[0], prior)
}

// owner is whose containers are looked for: the state's, or before it was first
// written that of the run that was cut off.
func (p *Project) owner(prior resource.Prior) (resource.Owner, error) {
	if prior.Lineage != "" || !p.Unfinished() {
		return prior.Owner(), nil
	}
	entries, err := p.journal()
	if err != nil || len(entries) == 0 {
		return resource.Owner{}, err
	}
	return resource.Owner{Lineage: entries[0].Lineage, Key: entries[0].Key}, nil
}

// observe looks at all hosts, at what a state has made there.
func (p *Project) observe(ctx context.Context, prior resource.Prior) (resource.Live, error) {
	owner, err := p.owner(prior)
	if err != nil {
		return resource.Live{}, err
	}
	var sources []observe.Source
	for _, h := range p.Intent.Hosts {
		open, err := p.Machine.Connect(ctx, h, prior)
		if err != nil {
			return resource.Live{}, err
		}
		sources = append(sources, open.Source(owner, prior))
	}
	live, err := observe.Read(ctx, sources, machine.Complete)
	if err != nil {
		return live, err
	}
	p.disown(live)
	observe.NameProcesses(live, prior, machine.Runs)
	return p.WithReleased(prior, live)
}

// Hardware looks at the GPUs of all hosts and at nothing else.
func (p *Project) Hardware(ctx context.Context) (resource.Live, error) {
	var sources []observe.Source
	for _, h := range p.Intent.Hosts {
		open, err := p.Machine.Open(h)
		if err != nil {
			return resource.Live{}, err
		}
		sources = append(sources, observe.Source{Name: h.Name, Simulated: h.Simulate, Runtime: open.LikelyRuntime(), GPUs: open.Agent})
	}
	return observe.Read(ctx, sources, machine.Complete)
}
