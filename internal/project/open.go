package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/machine"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
	"cosplay/internal/state"
)

// StdinName is what a configuration from standard input is called in messages.
const StdinName = "<stdin>"

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

	Find       Finder // of what import blocks name
	MayBeEmpty bool   // a folder without configuration is this machine alone
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
		p.setState(intent.State)
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
	return &Project{Dir: dir, Store: store, Machine: &machine.Machine{Dir: dir, State: store.Path, Version: o.Version}, find: o.Find}, nil
}

// setState sets the path of the state, before a host is open.
func (p *Project) setState(path string) { p.Store.Path, p.Machine.State = path, path }

func (p *Project) reading() config.Options {
	return config.Options{Dir: p.Dir, Home: machine.HomeDir(), Inputs: p.inputs, MayMiss: p.mayMiss, HostsMayMiss: p.hostsMayMiss, Version: p.Store.Version,
		Files: os.DirFS("/"), Env: os.LookupEnv, Target: catalog.Target, Catalog: catalog.Targets, Simulate: machine.CheckSimulate}
}

// OpenForRecovery opens a project whatever its configuration is like: with the hosts
// whose blocks are valid, the simulated hosts that have a folder, and this machine where
// no host is named. The complaint says what is wrong with the configuration; nil where
// nothing is.
func OpenForRecovery(o Options) (p *Project, complaint, err error) {
	if p, err = locate(o); err != nil {
		return nil, nil, err
	}
	p.mayMiss = true
	if p.inputs, err = inputs(p.Dir, os.Environ(), o); err != nil {
		return nil, nil, err
	}
	files, complaint := readFiles(p.Dir, o.File, true)
	intent, diags := config.Load(files, p.reading())
	if complaint == nil && diags.HasErrors() {
		complaint = fmt.Errorf("the configuration is not valid (cosplay validate tells why)")
	}
	named := config.Hosts(files, p.reading())
	if complaint != nil {
		intent = &config.Intent{Hosts: named, Files: intent.Files}
	}
	if len(named) == 0 {
		machine, _ := config.Load(nil, p.reading()) // nothing has no mistakes
		intent.Hosts = machine.Hosts
		p.Unnamed = config.LocalHost
	}
	p.Intent = intent
	if o.StatePath == "" && intent.State != "" {
		p.setState(intent.State)
	}
	p.takeSimulated()
	return p, complaint, nil
}

// takeSimulated takes the simulated hosts as their folders have them, and leaves
// out those that were never made.
func (p *Project) takeSimulated() {
	var hosts []config.Host
	for _, h := range p.Intent.Hosts {
		if h.Simulate == "" || sim.Is(p.Machine.SimDir(h.Name)) {
			hosts = append(hosts, h)
		}
	}
	made, _ := os.ReadDir(p.Machine.SimDir("")) // what cannot be read has none
	for _, e := range made {
		name := e.Name()
		spec, err := simulates(p.Machine.SimDir(name))
		if err != nil {
			continue // one that cannot be read is told when it is opened
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
	p.Intent.Hosts = hosts
}

// simulates tells what a folder simulates.
func simulates(dir string) (string, error) {
	h, err := sim.Open(dir)
	if err != nil {
		return "", err
	}
	defer h.Close()
	shown, err := h.Show()
	return shown.Simulates, err
}

// Survey reads GPUs and ledgers, of each host by itself: one that cannot be read does not
// keep the others from being read.
func (p *Project) Survey(ctx context.Context) (live resource.Live, failures []error) {
	for _, c := range p.Intent.Hosts {
		h, err := p.Machine.Open(c)
		if err == nil {
			var one resource.Live
			source := observe.Source{Name: c.Name, Simulated: c.Simulate, Runtime: h.LikelyRuntime(), GPUs: h.Agent}
			if one, err = observe.Read(ctx, []observe.Source{source}, machine.Complete); err == nil {
				live.Hosts = append(live.Hosts, one.Hosts...)
				continue
			}
		}
		if c.Name != p.Unnamed { // nobody said that this machine has GPUs
			failures = append(failures, err)
		}
	}
	p.disown(live)
	return live, failures
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
