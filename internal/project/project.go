// Package project is one folder with its configuration, its state and its
// hosts, taken through the pipeline: read, observe, resolve, compare, plan,
// apply. Commands stand on it; it prints nothing.
package project

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/runtime/docker"
	"cosplay/internal/salvage"
	"cosplay/internal/state"
)

// Options say which project it is.
type Options struct {
	Dir       string // the project's folder; "" is the current one
	File      string // a single configuration file instead of all in the folder; "-" is standard input
	StatePath string // default: cosplay.state.json in the folder
	Version   string // of cosplay, noted in the state

	Given     []Given                    // to variables, by flags; later ones count
	Saved     map[string]json.RawMessage // values of a saved plan, before all others
	HostsOnly bool                       // sessions are not asked for, so that variables may be without a value
	LookOnly  bool                       // nor are hosts: nothing is planned

	MayBeEmpty bool // a folder without configuration is this machine alone
}

// Project is an open project. Close ends its agents.
type Project struct {
	Dir    string // absolute
	Intent *config.Intent
	Store  state.Store
	Notes  []string // what recovery found of a run that was cut off

	Waiting func(*durable.Holder) // told who holds the lock, when it takes long to get; may be nil

	lock    *durable.Lock
	inputs  []config.Input // values of variables
	hosts   map[string]*host
	engine  *docker.Engine // nil until a host needs it
	unnamed string         // the host that no configuration names, with OpenAnyhow
	once    bool           // its folder is made for it alone

	mayMiss, hostsMayMiss bool // variables may be without a value, also where hosts need them
}

// Open reads and checks the configuration; no host is asked and nothing is
// written. Diagnostics tell every mistake; with errors there is no project.
func Open(o Options) (*Project, map[string]*hcl.File, hcl.Diagnostics, error) {
	p, files, err := prepare(o)
	if err != nil {
		return nil, nil, nil, err
	}
	intent, diags := config.Load(files, p.reading())
	if diags.HasErrors() {
		return nil, intent.Files, diags, nil
	}
	p.Intent = intent
	if o.StatePath == "" && intent.State != "" {
		p.Store.Path = intent.State
	}
	return p, intent.Files, diags, nil
}

// prepare finds a project and reads its files, and what is given to variables.
func prepare(o Options) (*Project, map[string][]byte, error) {
	p, err := locate(o)
	if err != nil {
		return nil, nil, err
	}
	p.mayMiss, p.hostsMayMiss = o.HostsOnly || o.LookOnly, o.LookOnly
	if p.inputs, err = inputs(p.Dir, os.Environ(), o); err != nil {
		return nil, nil, err
	}
	files, err := readFiles(p.Dir, o.File, o.MayBeEmpty)
	return p, files, err
}

// locate finds the project's folder and state, without its configuration.
func locate(o Options) (*Project, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder; --chdir wants the project's", dir)
	}
	store := state.Store{Path: o.StatePath, Version: o.Version}
	if store.Path == "" {
		store.Path = filepath.Join(dir, state.FileName)
	}
	if store.Path, err = filepath.Abs(store.Path); err != nil {
		return nil, err
	}
	for _, path := range []string{dir, store.Path} {
		if !utf8.ValidString(path) {
			return nil, fmt.Errorf("the path %q is not valid UTF-8, and the state and the files of sessions cannot hold it: rename that folder", path)
		}
	}
	return &Project{Dir: dir, Store: store, hosts: map[string]*host{}}, nil
}

func (p *Project) reading() config.Options {
	return config.Options{Dir: p.Dir, Home: homeDir(), Inputs: p.inputs, MayMiss: p.mayMiss, HostsMayMiss: p.hostsMayMiss, Version: p.Store.Version,
		Files: os.DirFS("/"), Env: os.LookupEnv, Target: catalog.Target, Catalog: catalog.Targets, Simulate: checkSimulate}
}

// Rest ends the agents until they are needed again: a command that goes into a
// session may stay there for days.
func (p *Project) Rest() {
	for _, h := range p.hosts {
		_ = h.agent.Close()
	}
}

// Close ends the agents and lets the lock go.
func (p *Project) Close() error {
	for _, h := range p.hosts {
		_ = h.agent.Close()
	}
	p.hosts = map[string]*host{}
	if p.engine != nil {
		_ = p.engine.Close()
		p.engine = nil
	}
	return p.unlock()
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
	p.lock = lock
	durable.Sweep(p.Store.Path)
	return nil
}

func (p *Project) unlock() error {
	if p.lock == nil {
		return nil
	}
	lock := p.lock
	p.lock = nil
	return lock.Release()
}

// StaleError refuses a plan that no longer rests on the world as it is.
type StaleError struct{ What string }

func (e *StaleError) Error() string {
	return "the plan is stale: " + e.What + ". Nothing was touched. Run cosplay plan again"
}

// Fresh looks again and compares with what a plan rests on.
func (p *Project) Fresh(ctx context.Context, planned *plan.Plan) (resource.Prior, resource.Live, error) {
	prior, live, err := p.Refresh(ctx)
	if err != nil {
		return prior, live, err
	}
	if planned.Destroys && !planned.Partial {
		prior = salvage.Regained(prior, live)
	}
	now := plan.NewBasis(prior, live)
	switch {
	case planned.Basis.State != p.Store.Path:
		return prior, live, &StaleError{"it was made for another project, with its state in " + planned.Basis.State}
	case planned.Basis.Lineage == "" && now.Lineage != "":
		return prior, live, &StaleError{"a first state has been written since it was made"}
	case now.Lineage != planned.Basis.Lineage:
		return prior, live, &StaleError{"the state has been replaced since it was made"}
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
	holder := p.holder(prior.Lineage)
	holder.Serial = prior.Serial + 1
	for name, h := range p.hosts {
		run.Hosts[name] = h.forApply(prior.Owner(), holder)
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

// readFiles reads what the configuration is made of.
func readFiles(dir, file string, mayBeEmpty bool) (map[string][]byte, error) {
	switch file {
	case "":
		files, err := config.ReadFiles(os.DirFS(dir))
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		if len(files) == 0 && !mayBeEmpty {
			return nil, fmt.Errorf("there is no *.hcl file in %s; cosplay init writes one", dir)
		}
		return files, nil
	case "-":
		data, err := io.ReadAll(os.Stdin)
		return map[string][]byte{StdinName: data}, err
	}
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, file)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; --file wants a file, and --chdir a project's folder", path)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s; mend --file, or leave it out to have every *.hcl of the folder read", path)
	}
	return map[string][]byte{file: data}, err
}
