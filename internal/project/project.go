// Package project is one folder with its configuration, its state and its
// hosts, taken through the pipeline: read, observe, resolve, compare, plan,
// apply. Commands stand on it; it prints nothing.
package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/durable"
	"cosplay/internal/observe"
	"cosplay/internal/plan"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// Options say which project it is.
type Options struct {
	Dir       string // the project's folder; "" is the current one
	File      string // a single configuration file instead of all in the folder; "-" is standard input
	StatePath string // default: cosplay.state.json in the folder
	Version   string // of cosplay, noted in the state

	MayBeEmpty bool // a folder without configuration is this machine alone
}

// Project is an open project. Close ends its agents.
type Project struct {
	Dir    string // absolute
	Intent *config.Intent
	Store  state.Store
	Notes  []string // what recovery found of a run that was cut off

	Waiting func(*durable.Holder) // told who holds the lock, when it takes long to get; may be nil

	lock  *durable.Lock
	hosts map[string]*host
}

// Open reads and checks the configuration; no host is asked and nothing is
// written. Diagnostics tell every mistake; with errors there is no project.
func Open(o Options) (*Project, map[string]*hcl.File, hcl.Diagnostics, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, nil, nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, nil, nil, fmt.Errorf("%s is not a folder; --chdir wants the project's", dir)
	}
	files, err := readFiles(dir, o.File, o.MayBeEmpty)
	if err != nil {
		return nil, nil, nil, err
	}
	home, _ := os.UserHomeDir() // without one, ~ is told as a mistake where it is used
	intent, diags := config.Load(files, config.Options{Dir: dir, Home: home, Target: catalog.Target, Simulate: CheckSimulate})
	if diags.HasErrors() {
		return nil, intent.Files, diags, nil
	}
	if diags = append(diags, notYetRunnable(intent)...); diags.HasErrors() {
		return nil, intent.Files, diags, nil
	}
	store := state.Store{Path: o.StatePath, Version: o.Version}
	if store.Path == "" {
		store.Path = filepath.Join(dir, state.FileName)
	}
	if store.Path, err = filepath.Abs(store.Path); err != nil {
		return nil, nil, nil, err
	}
	p := &Project{Dir: dir, Intent: intent, Store: store, hosts: map[string]*host{}}
	return p, intent.Files, diags, nil
}

// Close ends the agents and lets the lock go.
func (p *Project) Close() error {
	for _, h := range p.hosts {
		_ = h.agent.Close()
	}
	p.hosts = map[string]*host{}
	return p.unlock()
}

// Lock takes the state's lock for a command that changes things, waiting for at
// most the given time.
func (p *Project) Lock(ctx context.Context, command string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(p.Store.Path), 0o755); err != nil {
		return err
	}
	lock, err := durable.Acquire(ctx, p.Store.LockPath(), command, p.Waiting)
	p.lock = lock
	return err
}

// recoveryWait is how long a command waits for a run under way to end, or for
// the last step of one that was killed.
const recoveryWait = 10 * time.Second

// Refresh loads the state and looks at all hosts, so that both are of the same
// moment. A journal that is there tells of a run under way, which is waited for,
// or of one that was cut off, which is folded into the state.
func (p *Project) Refresh(ctx context.Context) (resource.Prior, resource.Live, error) {
	if p.lock == nil {
		prior, live, quiet, err := p.glance(ctx)
		if quiet || err != nil {
			return prior, live, err
		}
		if err := p.Lock(ctx, "recovery", recoveryWait); err != nil {
			return prior, live, err
		}
		defer func() { _ = p.unlock() }()
	}
	prior, err := p.load()
	if err != nil {
		return prior, resource.Live{}, err
	}
	// Only now: what is seen must be what the cut-off run has left.
	live, err := p.Observe(ctx)
	if err != nil || !p.unfinished() {
		return prior, live, err
	}
	prior, err = p.recover(prior, live)
	return prior, live, err
}

// glance reads without the lock. It is quiet when no run was under way in the
// meantime, so that state and world belong together.
func (p *Project) glance(ctx context.Context) (prior resource.Prior, live resource.Live, quiet bool, err error) {
	for range 3 {
		if p.unfinished() {
			return prior, live, false, nil
		}
		if prior, err = p.load(); err != nil {
			return prior, live, false, err
		}
		if live, err = p.Observe(ctx); err != nil {
			return prior, live, false, err
		}
		again, err := p.load()
		if err != nil {
			return prior, live, false, err
		}
		if !p.unfinished() && again.Serial == prior.Serial && again.Lineage == prior.Lineage {
			return prior, live, true, nil
		}
	}
	return prior, live, false, nil
}

// unfinished reports whether a run is under way or was cut off.
func (p *Project) unfinished() bool {
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
		if live, err = p.Observe(ctx); err != nil {
			return Outlook{}, err
		}
		entries, err := durable.ReadJournal[apply.Entry](p.Store.JournalPath())
		if err != nil {
			return Outlook{}, err
		}
		if len(entries) > 0 && entries[0].Serial == prior.Serial {
			prior, _ = apply.Recover(prior, entries, live)
		}
	}
	d := diff.Compare(resource.Desired{}, prior, live, p.diffOptions())
	return Outlook{Prior: prior, Live: live, Plan: plan.Build(d, resource.Desired{}, prior, live)}, nil
}

func (p *Project) unlock() error {
	if p.lock == nil {
		return nil
	}
	lock := p.lock
	p.lock = nil
	return lock.Release()
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
	entries, err := durable.ReadJournal[apply.Entry](p.Store.JournalPath())
	if err != nil {
		return prior, err
	}
	if len(entries) == 0 {
		return prior, durable.Remove(p.Store.JournalPath())
	}
	begin := entries[0]
	switch {
	case prior.Lineage == begin.Lineage && prior.Serial == begin.Serial+1:
		// The state was written, only the journal was not yet removed.
	case prior.Serial == begin.Serial && (prior.Lineage == begin.Lineage || prior.Lineage == ""):
		prior.Lineage = begin.Lineage
		next, notes := apply.Recover(prior, entries, live)
		p.Notes = append(p.Notes, notes...)
		if prior, err = p.Store.Save(next); err != nil {
			return prior, err
		}
	default:
		return prior, fmt.Errorf("the journal %s belongs to another state (lineage %s, serial %d) than %s (lineage %s, serial %d); bring back the state that it belongs to",
			p.Store.JournalPath(), begin.Lineage, begin.Serial, p.Store.Path, prior.Lineage, prior.Serial)
	}
	return prior, durable.Remove(p.Store.JournalPath())
}

// Observe looks at all hosts.
func (p *Project) Observe(ctx context.Context) (resource.Live, error) {
	var sources []observe.Source
	for _, h := range p.Intent.Hosts {
		open, err := p.open(h)
		if err != nil {
			return resource.Live{}, err
		}
		sources = append(sources, observe.Source{Name: h.Name, Simulated: h.Simulate, Runtime: open.runtimeName,
			GPUs: open.agent, Containers: open.runtime})
	}
	return observe.Read(ctx, sources, complete)
}

// complete adds to a model what only the catalog knows.
func complete(g resource.GPU) resource.Model {
	m, _ := catalog.Complete(g.Model)
	if product, ok := catalog.Product(m.Name); ok && g.MIGCapable && len(m.Profiles) == 0 {
		m.Profiles, m.MemorySlices, m.ComputeSlices = product.Model.Profiles, product.Model.MemorySlices, product.Model.ComputeSlices
	}
	return m
}

// Goal says what a plan is to reach.
type Goal int

// The goals.
const (
	AsConfigured Goal = iota
	NothingLeft       // destroy
)

// Outlook is a plan with the view of the world that it was made on.
type Outlook struct {
	Prior resource.Prior
	Live  resource.Live
	Plan  *plan.Plan
}

// Plan works out what there is to do. Diagnostics hold warnings, and errors
// where sessions find no place.
func (p *Project) Plan(ctx context.Context, goal Goal) (Outlook, hcl.Diagnostics, error) {
	var (
		o     Outlook
		diags hcl.Diagnostics
		err   error
	)
	if o.Prior, o.Live, err = p.Refresh(ctx); err != nil {
		return o, nil, err
	}
	var desired resource.Desired
	if goal == AsConfigured {
		desired, diags = resolve.Desired(p.Intent, o.Prior, o.Live)
	}
	d := diff.Compare(desired, o.Prior, o.Live, p.diffOptions())
	o.Plan = plan.Build(d, desired, o.Prior, o.Live)
	o.Plan.Basis.State = p.Store.Path
	return o, diags, nil
}

func (p *Project) diffOptions() diff.Options {
	told := map[string]int{}
	for _, h := range p.Intent.Hosts {
		if h.BaselineClockMHz != nil {
			told[h.Name] = *h.BaselineClockMHz
		}
	}
	return diff.Options{BaselineClockMHz: told}
}

// StaleError refuses a plan that no longer rests on the world as it is.
type StaleError struct{ What string }

func (e *StaleError) Error() string {
	return "the plan is stale: " + e.What + " since it was made. Nothing was touched. Run cosplay plan again"
}

// Fresh looks again and compares with what a plan rests on.
func (p *Project) Fresh(ctx context.Context, planned *plan.Plan) (resource.Prior, resource.Live, error) {
	prior, live, err := p.Refresh(ctx)
	if err != nil {
		return prior, live, err
	}
	now := plan.NewBasis(prior, live)
	switch {
	case planned.Basis.State != p.Store.Path:
		return prior, live, &StaleError{"it was made for another project, with its state in " + planned.Basis.State}
	case now.Lineage != planned.Basis.Lineage:
		return prior, live, &StaleError{"the state has been replaced"}
	case now.Serial != planned.Basis.Serial:
		return prior, live, &StaleError{fmt.Sprintf("the state has moved from serial %d to %d", planned.Basis.Serial, now.Serial)}
	case now.Live != planned.Basis.Live:
		return prior, live, &StaleError{"GPUs, slices or sessions have been changed"}
	}
	return prior, live, nil
}

// Apply carries a plan out, under the lock that the caller took with Lock, and
// saves what came of it. The result is true also with an error.
func (p *Project) Apply(ctx context.Context, planned *plan.Plan, prior resource.Prior, live resource.Live, o ApplyOptions) (apply.Result, error) {
	if prior.Lineage == "" {
		prior.Lineage = state.NewLineage()
	}
	journal, err := durable.CreateJournal(p.Store.JournalPath())
	if err != nil {
		return apply.Result{}, err
	}
	defer journal.Close()
	run := apply.Run{Hosts: map[string]apply.Host{}, Journal: journal, Progress: o.Progress, Parallelism: o.Parallelism, KeepPartial: o.KeepPartial, Look: p.Observe}
	for name, h := range p.hosts {
		run.Hosts[name] = apply.Host{GPUs: h.agent, Runtime: h.runtime}
	}
	result, err := run.Execute(ctx, planned, prior, live)
	if err != nil {
		return result, fmt.Errorf("%w; the run was stopped. What it did is found and taken over by the next command", err)
	}
	if result.Prior, err = p.Store.Save(result.Prior); err != nil {
		return result, fmt.Errorf("%w; what was done is in %s and is taken over by the next command", err, p.Store.JournalPath())
	}
	return result, durable.Remove(p.Store.JournalPath())
}

// ApplyOptions steer a run.
type ApplyOptions struct {
	Progress    func(apply.Event)
	Parallelism int
	KeepPartial bool
}
