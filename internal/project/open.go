package project

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/machine"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
	"cosplay/internal/state"
)

// StdinName names a configuration from standard input in messages.
const StdinName = "<stdin>"

// Options select a project.
type Options struct {
	Dir       string // the project's folder; "" is the current one
	File      string // a single configuration file instead of all in the folder; "-" is standard input
	StatePath string // default: cosplay.state.json in the folder
	Version   string // of cosplay, noted in the state

	Given     []Given                    // values of variables, by flags; the last one counts
	Saved     map[string]json.RawMessage // values of a saved plan, before all others
	Timestamp string                     // of a saved plan
	HostsOnly bool                       // sessions are not needed, so their variables may have no value
	ReadOnly  bool                       // hosts are not needed, either: the command does not plan

	Find       Finder            // for import blocks
	Unwritten  map[string][]byte // generated files by name, as if they were in the folder
	MayBeEmpty bool              // a folder without configuration has this machine as its only host
	Clusters   bool              // the command serves hosts that are Kubernetes clusters, too

	// EnginesMayFail lets a plan do without a container engine that does not answer: its sessions are as the state has
	// them, and the plan has drift for the engine.
	EnginesMayFail bool

	Unaudited func(error) // called once if a change has no line in the audit log; may be nil
}

// Open reads and checks the configuration. It reads no host and writes nothing.
// Diagnostics have all mistakes; with errors the project is nil.
func Open(o Options) (*Project, map[string]*hcl.File, hcl.Diagnostics, error) {
	p, files, err := prepare(o)
	if err != nil {
		return nil, nil, nil, err
	}
	intent, diags := config.Load(files, p.reading())
	if diags.HasErrors() {
		return nil, intent.Files, diags, nil
	}
	if o.StatePath == "" && intent.State != "" {
		if err := p.setState(intent.State); err != nil {
			return nil, nil, nil, err
		}
	}
	if p.Intent, p.Clusters = intent.Apart(); p.Clusters != nil {
		if diags = append(diags, p.checkClusters(o)...); diags.HasErrors() {
			return nil, intent.Files, diags, nil
		}
	}
	return p, intent.Files, diags, nil
}

// prepare finds a project, and reads its files and the values of variables. If only the
// files cannot be read, it returns the project with the error.
func prepare(o Options) (*Project, map[string][]byte, error) {
	p, err := locate(o)
	if err != nil {
		return nil, nil, err
	}
	p.timestamp = cmp.Or(o.Timestamp, time.Now().UTC().Format(time.RFC3339))
	if p.inputs, err = inputs(p.Dir, os.Environ(), o); err != nil {
		return nil, nil, err
	}
	files, err := readFiles(p.Dir, o.File, o.MayBeEmpty || len(o.Unwritten) > 0)
	if files != nil {
		maps.Copy(files, o.Unwritten)
	}
	if errors.Is(err, errNoConfig) {
		err = noConfig(p, o)
	}
	return p, files, err
}

// locate finds the project's folder and state, without its configuration.
func locate(o Options) (*Project, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder; --chdir needs the project's folder", dir)
	}
	typed := cmp.Or(o.StatePath, filepath.Join(dir, state.FileName))
	if typed, err = filepath.Abs(typed); err != nil {
		return nil, err
	}
	if typed, err = durable.Destination(typed); err != nil {
		return nil, err
	}
	dir, path := identity(dir, typed)
	store := state.Store{Path: path, Version: o.Version}
	for _, path := range []string{dir, store.Path} {
		if !utf8.ValidString(path) {
			return nil, fmt.Errorf("the path %q is not valid UTF-8, so the state and the files of sessions cannot contain it. Fix: rename that folder", path)
		}
	}
	p := &Project{Files: Files{Dir: dir, Store: store}, options: o}
	p.Machine = &machine.Machine{Dir: dir, State: store.Path, Version: o.Version}
	return p, p.checkOwner(false)
}

// identity are the folder and the state of a project by the paths that identify it, whichever symbolic links the user
// came by. The sessions of earlier versions of cosplay have the paths that they were created by: while they exist, these
// stay.
func identity(dir, statePath string) (string, string) {
	dir, statePath = real(dir), resolved(statePath)
	folder := state.Store{Path: statePath}.FolderOfSessions(machine.ScratchDir)
	if folder == "" || folder == dir || !sameFile(folder, dir) {
		return dir, statePath
	}
	if inside, err := filepath.Rel(dir, statePath); err == nil && filepath.IsLocal(inside) {
		statePath = filepath.Join(folder, inside)
	}
	return folder, statePath
}

// real is a path without symbolic links; the path itself where it leads nowhere.
func real(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}

// setState sets the path of the state, before a host is open.
func (p *Project) setState(path string) error {
	path, err := durable.Destination(path)
	p.Dir, path = identity(p.Dir, path)
	p.Store.Path, p.Machine.State, p.Machine.Dir = path, path, p.Dir
	return err
}

// patience is the time for an evaluation of the configuration. A fleet of 10,000 sessions needs a second.
const patience = 15 * time.Second

// begin returns a channel that is closed when the time for an evaluation is over.
func begin() <-chan struct{} {
	over := make(chan struct{})
	time.AfterFunc(patience, func() { close(over) })
	return over
}

func (f *Files) checkSimulate(spec string) error { return machine.CheckSimulate(f.Dir, spec) }

func (p *Project) reading() config.Options {
	return config.Options{Begin: begin, Timestamp: p.timestamp, Dir: p.Dir, Home: machine.HomeDir(), Inputs: p.inputs,
		MayMiss: p.options.HostsOnly || p.options.ReadOnly, HostsMayMiss: p.options.ReadOnly, Version: p.Store.Version,
		Files: os.DirFS("/"), Env: os.LookupEnv, Target: catalog.Target, Catalog: catalog.Targets, Derive: catalog.Derive,
		Capabilities: catalog.Capabilities, Simulate: p.checkSimulate}
}

// OpenForRecovery opens a project even if its configuration is not valid: with the hosts
// whose blocks are valid, the simulated hosts that have a folder, and this machine if no
// host is named. The complaint is the error of the configuration, nil if it is valid.
func OpenForRecovery(o Options) (p *Project, complaint, err error) {
	o.HostsOnly, o.MayBeEmpty = true, true
	p, files, complaint := prepare(o)
	if p == nil {
		return nil, nil, complaint
	}
	intent, diags := config.Load(files, p.reading())
	if complaint == nil && diags.HasErrors() {
		complaint = fmt.Errorf("the configuration is not valid (cosplay validate shows why)")
	}
	named := config.Hosts(files, p.reading())
	if complaint != nil {
		intent = &config.Intent{Hosts: named, Files: intent.Files}
	}
	intent, p.Clusters = intent.Apart()
	if len(named) == 0 || len(intent.Hosts) == 0 {
		machine, _ := config.Load(nil, p.reading()) // an empty configuration has no mistakes
		intent.Hosts = machine.Hosts
		p.Unnamed = config.LocalHost
	}
	p.Intent = intent
	if o.StatePath == "" && intent.State != "" {
		if err := p.setState(intent.State); err != nil {
			return nil, nil, err
		}
	}
	if _, err := os.Stat(p.ownSims()); err == nil {
		p.Machine.Sims = p.ownSims()
	}
	p.takeSimulated()
	return p, complaint, nil
}

// takeSimulated adds the simulated hosts that have a folder, and drops those that have
// none. A run that describes its simulated host has no other.
func (l *Fleet) takeSimulated() {
	var hosts []config.Host
	for _, h := range l.Intent.Hosts {
		if h.Connect != "" || h.Simulate == "" && l.Machine.Sims == "" || sim.Is(l.Machine.SimDir(h.Name)) {
			hosts = append(hosts, h)
		}
	}
	made, _ := os.ReadDir(l.Machine.SimDir("")) // a folder that cannot be read has none
	for _, e := range made {
		name := e.Name()
		spec, err := simulates(l.Machine.SimDir(name))
		if err != nil {
			continue // opening the host reports the error
		}
		i := slices.IndexFunc(hosts, func(h config.Host) bool { return h.Name == name })
		if i < 0 {
			i = len(hosts)
			hosts = append(hosts, config.Host{Name: name, Runtime: config.RuntimeAuto, Manage: config.ManageAll()})
		}
		if hosts[i].NVML == "" {
			hosts[i].Simulate = spec
		}
	}
	l.Intent.Hosts = hosts
}

// simulates is the value of simulate for the host in a folder.
func simulates(dir string) (string, error) {
	h, err := sim.Open(dir)
	if err != nil {
		return "", err
	}
	defer h.Close()
	shown, err := h.Show()
	return shown.Simulates, err
}

// ReadHosts reads the GPUs and the ledger of each host. If it cannot read a host, it still
// reads the others.
func (p *Project) ReadHosts(ctx context.Context) (live resource.Live, failures []error) {
	p.Machine.Greet(p.Intent.Hosts)
	for _, c := range p.Intent.Hosts {
		h, err := p.Machine.Open(c)
		if err == nil {
			var one resource.Live
			if one, err = observe.Read(ctx, []observe.Source{h.Hardware()}, machine.Complete); err == nil {
				live.Hosts = append(live.Hosts, one.Hosts...)
				continue
			}
		}
		if c.Name != p.Unnamed { // no configuration states that this machine has GPUs
			failures = append(failures, err)
		}
	}
	p.disown(live)
	return live, failures
}

var errNoConfig = errors.New("no configuration")

// readFiles reads the files of the configuration.
func readFiles(dir, file string, mayBeEmpty bool) (map[string][]byte, error) {
	switch file {
	case "":
		files, err := config.ReadFiles(os.DirFS(dir))
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		if len(files) == 0 && !mayBeEmpty {
			return nil, errNoConfig
		}
		return files, nil
	case "-":
		data, err := io.ReadAll(io.LimitReader(os.Stdin, config.MaxSource+1)) // Load reports what exceeds the limit
		return map[string][]byte{StdinName: data}, err
	}
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, file)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; --file needs a file, and --chdir needs a project's folder", path)
	}
	data, err := durable.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s. Fix: correct --file, or remove it to read every *.hcl file of the folder", path)
	}
	return map[string][]byte{file: data}, err
}
