package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/durable"
	"cosplay/internal/machine"
	"cosplay/internal/observe"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
)

// RecoveryWait is how long a command waits for a run under way, or for the last step of a
// killed run.
const RecoveryWait = 10 * time.Second

// Refresh loads the state and reads all hosts, so that both are of the same moment. If
// there is a journal, it waits for the run under way, or folds the journal of an
// interrupted run into the state.
func (p *Project) Refresh(ctx context.Context) (resource.Prior, resource.Live, error) {
	if p.lock == nil {
		prior, live, quiet, err := p.readUnlocked(ctx)
		if err == nil {
			err = p.RefuseCopy(prior, live)
		}
		if quiet && !salvage.Behind(prior, live) || err != nil {
			return prior, live, err
		}
		if err := p.Lock(ctx, "recovery", cmp.Or(p.Wait, RecoveryWait)); err != nil {
			return prior, live, err
		}
		defer func() { _ = p.Unlock() }()
	}
	prior, live, err := p.FoldJournal(ctx)
	if err == nil {
		err = p.RefuseCopy(prior, live)
	}
	if err == nil && salvage.Behind(prior, live) {
		return p.catchUp(ctx, prior, live)
	}
	return prior, live, err
}

// FoldJournal loads the state, reads all hosts, and folds the journal of an interrupted
// run into the state. The caller has the lock.
func (p *Project) FoldJournal(ctx context.Context) (resource.Prior, resource.Live, error) {
	prior, err := p.load()
	if err != nil {
		return prior, resource.Live{}, err
	}
	// Only under the lock: the agent of an interrupted run may still finish a step.
	live, err := p.observe(ctx, prior)
	if err != nil {
		return prior, live, err
	}
	if p.Unfinished() {
		known := len(prior.Owner().Imported)
		if prior, err = p.recover(prior, live); err == nil && len(prior.Owner().Imported) > known {
			live, err = p.observe(ctx, prior) // the bodies that the interrupted run has imported
		}
	}
	if err == nil {
		p.RemoveShared(prior)
	}
	return apply.Reconsider(prior, live), live, err
}

// readUnlocked reads state and hosts without the lock. It is quiet if no run was under
// way meanwhile, so that both are of the same moment.
func (p *Project) readUnlocked(ctx context.Context) (prior resource.Prior, live resource.Live, quiet bool, err error) {
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

// journal reads the journal of a run that is under way or was interrupted.
func (f *Files) journal() ([]apply.Entry, error) {
	path := f.Store.JournalPath()
	entries, err := durable.ReadJournal[apply.Entry](path)
	if err == nil && len(entries) > 0 {
		if err = apply.CheckJournal(entries); err != nil {
			err = fmt.Errorf("the journal %s is damaged: %w. Nothing was changed. Fix: keep a copy and restore the file from a backup; without a backup, cosplay reset restores the host", path, err)
		}
	}
	return entries, err
}

// Unfinished reports whether a run is under way or was interrupted.
func (f *Files) Unfinished() bool {
	_, err := os.Stat(f.Store.JournalPath())
	return err == nil
}

// load loads the state and checks that the configuration has all its hosts.
func (p *Project) load() (resource.Prior, error) {
	prior, err := p.Store.Load()
	if err != nil {
		return prior, err
	}
	return p.trust(prior), p.knowsHosts(prior)
}

// observeMoving reads hosts that a run is changing. It tries again if an object is removed
// between two calls of the driver.
func (p *Project) observeMoving(ctx context.Context, prior resource.Prior) (live resource.Live, err error) {
	for range 5 {
		if live, err = p.observe(ctx, prior); err == nil {
			return live, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return live, err
}

// Peek reads state and hosts without waiting: during a run, it shows the steps that are
// done. It writes nothing. Its plan has the drift, and no changes.
func (p *Project) Peek(ctx context.Context) (Outlook, error) {
	prior, live, quiet, err := p.readUnlocked(ctx)
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
	ends := p.ends(ctx, prior, live)
	drift := p.blame(ctx, diff.Drifts(prior, live, Ended(ends, Now())), prior, live)
	return Outlook{Prior: prior, Live: live, Ends: ends, Plan: &plan.Plan{Diff: diff.Diff{Drift: drift}}}, nil
}

// knowsHosts checks that the configuration has every host that the state has.
func (l *Fleet) knowsHosts(prior resource.Prior) error {
	check := func(host, what string) error {
		_, err := l.Host(host)
		switch {
		case err == nil:
			return nil
		case l.Clusters != nil && l.Clusters.Host(host) != nil:
			return fmt.Errorf("the state has %s on host %q, which was a machine and is a Kubernetes cluster now. Fix: restore the machine's block and give the cluster another one; cosplay apply then removes it from the machine", what, host)
		default:
			return fmt.Errorf("the state has %s on host %q, which the configuration no longer names. Fix: restore the host block, run cosplay destroy, then remove the block", what, host)
		}
	}
	for _, s := range prior.Sessions {
		if err := check(s.Slice.Host, s.Address.String()); err != nil {
			return err
		}
	}
	for _, g := range prior.GPUs {
		if err := check(g.Host, g.UUID); err != nil {
			return err
		}
	}
	return nil
}

// recover folds the journal of an interrupted run into the state.
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
		return prior, prose.Advice{Fix: "restore the state that it belongs to, or run cosplay state rebuild",
			What: fmt.Sprintf("the journal %s belongs to another state (lineage %s, serial %d) than %s (lineage %s, serial %d)", p.Store.JournalPath(), begin.Lineage, begin.Serial, p.Store.Path, prior.Lineage, prior.Serial)}
	case prior.Lineage == begin.Lineage && prior.Serial == begin.Serial+1:
		// The run has written the state, and was interrupted before it removed the journal.
	default:
		prior.Lineage, prior.Key = begin.Lineage, begin.Key
		next, notes := apply.Recover(prior, entries, live)
		p.Notes = append(p.Notes, notes...)
		for _, op := range apply.Open(entries) {
			p.audit(prior.Lineage, apply.Effect{Op: op, Prior: prior, Live: live}, "interrupted")
		}
		next.LastRun = next.Serial + 1
		if prior, err = p.Store.Save(next); err != nil {
			return prior, err
		}
	}
	if err := p.Readdress(prior, moves(entries, func(e apply.Entry) *plan.OpJSON { return e.Op })); err != nil {
		return prior, err
	}
	return prior, durable.Remove(p.Store.JournalPath())
}

// RemoveShared removes what sessions shared from folders without a session. A run that was interrupted, or has lost a machine,
// may have removed the last session, and not that. A machine is asked only where the state has no session on it.
func (l *Fleet) RemoveShared(prior resource.Prior) {
	for name, h := range l.Machine.Hosts() {
		held := slices.ContainsFunc(prior.Sessions, func(s resource.PriorSession) bool { return s.Slice.Host == name })
		if !held || !l.Machine.Elsewhere(h.Config) {
			h.RemoveShared()
		}
	}
}

// continues reports whether the run of a journal started from a state, or wrote it.
func continues(begin apply.Entry, prior resource.Prior) bool {
	same := prior.Lineage == begin.Lineage
	return prior.Serial == begin.Serial && (same || prior.Lineage == "") || same && prior.Serial == begin.Serial+1
}

// StrandedJournal reports whether there is a journal that no command can fold into the
// state: a damaged one, or another state's.
func (f *Files) StrandedJournal(prior resource.Prior) bool {
	entries, err := f.journal()
	return err != nil || len(entries) > 0 && !continues(entries[0], prior)
}

// owner identifies the project's containers: by the state, or before the first state was
// written, by the journal of the interrupted run.
func (f *Files) owner(prior resource.Prior) (resource.Owner, error) {
	if prior.Lineage != "" || !f.Unfinished() {
		return prior.Owner(), nil
	}
	entries, err := f.journal()
	if err != nil || len(entries) == 0 {
		return resource.Owner{}, err
	}
	return resource.Owner{Lineage: entries[0].Lineage, Key: entries[0].Key}, nil
}

// observe reads all hosts, with the objects of a state.
func (p *Project) observe(ctx context.Context, prior resource.Prior) (resource.Live, error) {
	owner, err := p.owner(prior)
	if err != nil {
		return resource.Live{}, err
	}
	p.Machine.Greet(p.Intent.Hosts)
	var sources []observe.Source
	for _, h := range p.Intent.Hosts {
		source, err := p.source(ctx, h, owner, prior)
		if err != nil {
			return resource.Live{}, err
		}
		sources = append(sources, source)
	}
	live, err := observe.Read(ctx, sources, machine.Complete)
	if err != nil {
		return live, err
	}
	p.disown(live)
	observe.ResolveMarks(live, prior, machine.Runs)
	return p.WithReleased(ctx, prior, live)
}

// source is how to read a host. What a run has done to sessions, only their engine can say, unless it was silent from the
// beginning of the run.
func (p *Project) source(ctx context.Context, c config.Host, owner resource.Owner, prior resource.Prior) (observe.Source, error) {
	mayFail := p.options.EnginesMayFail && (!p.Unfinished() || p.silent[c.Name])
	var s observe.Source
	elsewhere := p.Machine.Elsewhere(c)
	h, err := p.Machine.Connect(ctx, c, prior)
	switch {
	case err == nil:
		s = h.Source(owner, prior)
	case elsewhere && !p.Machine.IsOpen(c):
		s, err = observe.Source{Name: c.Name, Failed: err}, nil
	case mayFail:
		if h, unopened := p.Machine.Open(c); unopened == nil {
			s = h.Hardware()
			s.Failed, err = err, nil
		}
	}
	if mayFail && s.GPUs != nil {
		s.Assumed = prior.Bodies(c.Name)
	}
	if s.Elsewhere = elsewhere; elsewhere {
		s.Unreached = &resource.Host{Name: c.Name, Simulated: c.Simulate, BootID: prior.BootIDs[c.Name], Bodies: prior.Bodies(c.Name)}
	}
	s.MPS.Uses = p.Intent.UsesMPS(c)
	return s, err
}

// Hardware reads the GPUs of all hosts, and no sessions.
func (l *Fleet) Hardware(ctx context.Context) (resource.Live, error) {
	l.Machine.Greet(l.Intent.Hosts)
	var sources []observe.Source
	for _, c := range l.Intent.Hosts {
		h, err := l.Machine.Open(c)
		source := observe.Source{Name: c.Name, Failed: err}
		switch {
		case err == nil:
			source = h.Hardware()
		case !l.Machine.Elsewhere(c):
			return resource.Live{}, err
		}
		if l.Machine.Elsewhere(c) {
			source.Unreached = &resource.Host{Name: c.Name}
		}
		sources = append(sources, source)
	}
	live, err := observe.Read(ctx, sources, machine.Complete)
	if l.Clusters == nil || err != nil {
		return live, err
	}
	all, diags := l.worlds()
	for _, d := range diags {
		if d.Severity == hcl.DiagError && len(sources) == 0 {
			return live, errors.New(d.Detail)
		}
	}
	for _, w := range all { // one whose file cannot be used has no GPUs
		live.Hosts = append(live.Hosts, w.Host)
	}
	slices.SortFunc(live.Hosts, func(a, b resource.Host) int { return strings.Compare(a.Name, b.Name) })
	return live, err
}
