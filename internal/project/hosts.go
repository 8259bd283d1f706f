package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cosplay/internal/agent"
	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/disguise"
	"cosplay/internal/ledger"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/runtime/docker"
	"cosplay/internal/runtime/process"
	"cosplay/internal/sim"
	"cosplay/internal/state"
)

// scratchDir is the project's own folder for what can be made anew: simulated
// hosts and session folders.
const scratchDir = ".cosplay"

// StdinName is what a configuration from standard input is called in messages.
const StdinName = "<stdin>"

// Runtime is a place where the sessions of a host run.
type Runtime interface {
	apply.Runtime
	observe.ContainerLister
	// Remains tells what its sessions have left, for a state that was lost.
	Remains(ctx context.Context) ([]resource.Remains, error)
	// Exec runs a command in a session with the given streams, a terminal where
	// they are one, and returns its exit code.
	Exec(ctx context.Context, session string, argv []string, streams runtime.Streams) (int, error)
	// Usage is what the programs of a session use of its GPU's memory, or
	// fs.ErrNotExist where they do not count.
	Usage(session string) (disguise.Usage, error)
	// Interior is what a session's programs are to find, by what the state says.
	// What asks them is put where they can run it.
	Interior(s resource.PriorSession) (runtime.Interior, error)
	// Altered tells, by check of files, what of a session's disguise is not as it
	// was written.
	Altered(ctx context.Context, s resource.PriorSession) (map[string]string, error)
}

// containersSuffix ends the name of the folder of those sessions that run in
// containers.
const containersSuffix = ".containers"

// host is an open host.
type host struct {
	config  config.Host
	agent   *agent.Client
	library string         // NVML's; "" is the system's
	simDir  string         // of a simulated host
	rooted  bool           // changed by root alone, and we are not root
	folders string         // where the sessions' folders are, by runtime
	runtime string         // of new sessions
	engine  *docker.Engine // nil where no session needs one
	version string         // of cosplay
}

// open connects to a host; its agent starts with the first question. A
// simulated host is made when it is first needed.
func (p *Project) open(c config.Host) (*host, error) {
	if h, ok := p.hosts[c.Name]; ok {
		return h, nil
	}
	h := &host{config: c, library: c.NVML, folders: foldersOf(p.Dir, p.Store.Path, c.Name), version: p.Store.Version}
	if c.Simulate != "" {
		h.simDir = p.SimDir(c.Name)
		if err := ensureSimulated(h.simDir, c); err != nil {
			return nil, err
		}
		h.library = sim.LibraryPath(h.simDir)
	}
	options := agent.Options{Library: h.library, Ledger: p.book(c).Dir}
	options.User = userName()
	h.rooted = options.Ledger == ledger.SystemDir && os.Geteuid() != 0
	options.Privileged = h.rooted
	if p.lock != nil {
		options.Hold = p.lock.File()
	}
	h.agent = agent.New(options)
	p.hosts[c.Name] = h
	return h, nil
}

// ledgerDir is where the ledger of a host lies: with a simulated host its own
// folder. A host of which nothing may be changed needs none.
func ledgerDir(c config.Host, library string) string {
	if dir := filepath.Dir(library); library != "" && sim.Is(dir) {
		return dir
	}
	if c.Manage == (config.Manage{}) {
		return ""
	}
	return ledger.SystemDir
}

// book is the ledger of a host, which need not be open.
func (p *Project) book(c config.Host) ledger.Book {
	library := c.NVML
	if c.Simulate != "" {
		library = sim.LibraryPath(p.SimDir(c.Name))
	}
	return ledger.Book{Dir: ledgerDir(c, library)}
}

// connect opens a host with the engine that its sessions need, and settles where
// new ones run.
func (p *Project) connect(ctx context.Context, c config.Host, prior resource.Prior) (*host, error) {
	h, err := p.open(c)
	if err != nil || h.runtime != "" {
		return h, err
	}
	held := p.heldRuntimes(c.Name, prior)
	switch {
	case c.Runtime != config.RuntimeAuto:
		h.runtime = c.Runtime
	case len(held) > 0: // decided once, and kept
		h.runtime = held[0]
	case c.Simulate != "" || !docker.Installed():
		h.runtime = resource.RuntimeProcess
	default:
		h.runtime = resource.RuntimeDocker
	}
	if h.runtime != resource.RuntimeDocker && !slices.Contains(held, resource.RuntimeDocker) {
		return h, nil
	}
	if err := p.connectEngine(ctx, h); err != nil {
		h.runtime = ""
		return nil, err
	}
	return h, nil
}

// connectEngine gives a host the engine that its containers run in.
func (p *Project) connectEngine(ctx context.Context, h *host) (err error) {
	if p.engine == nil {
		if p.engine, err = docker.Connect(ctx); err != nil {
			return fmt.Errorf("host %s: %w", h.config.Name, err)
		}
	}
	h.engine = p.engine
	return nil
}

// heldRuntimes are those that sessions of a host run in, Docker first.
func (p *Project) heldRuntimes(host string, prior resource.Prior) []string {
	var held []string
	for _, s := range prior.Sessions {
		if s.Slice.Host == host && !slices.Contains(held, s.Runtime) {
			held = append(held, s.Runtime)
		}
	}
	slices.Sort(held)
	return held
}

// runtimes are where an owner's sessions run on the host.
func (h *host) runtimes(owner resource.Owner) map[string]Runtime {
	all := map[string]Runtime{resource.RuntimeProcess: process.Runtime{Base: h.folders, Library: h.library, Key: owner.Key, Serial: owner.Serial, Version: h.version}}
	if h.engine != nil {
		all[resource.RuntimeDocker] = h.docker(owner)
	}
	return all
}

func (h *host) docker(owner resource.Owner) docker.Runtime {
	return docker.Runtime{Engine: h.engine, Base: h.folders + containersSuffix, Host: h.config.Name, Owner: owner, Library: h.library, SimDir: h.simDir, Version: h.version}
}

// cuda is the path of the host's CUDA driver; "" is none.
func (h *host) cuda() string {
	library := h.library
	if library == "" {
		library, _ = disguise.SystemLibrary() // without it CUDA's may still be there
	}
	return disguise.CUDALibrary(library)
}

// noCUDA is what is missing where it is not there.
const noCUDA = "there is no libcuda.so.1: sessions show their target to NVML alone, and nothing holds their VRAM cap"

// source is what there is to look at.
func (h *host) source(owner resource.Owner, prior resource.Prior) observe.Source {
	s := observe.Source{Name: h.config.Name, Simulated: h.config.Simulate, Runtime: h.runtime, GPUs: h.agent}
	for _, runtime := range h.runtimes(owner) {
		s.Containers = append(s.Containers, runtime)
	}
	if h.engine != nil {
		s.Engine, s.Strays = h.docker(owner), h.docker(owner)
	}
	for _, one := range prior.Sessions {
		if one.Slice.Host == h.config.Name {
			s.Known = append(s.Known, one.ID)
		}
	}
	return s
}

// forApply is what there is to change.
func (h *host) forApply(owner resource.Owner, holder resource.Holder) apply.Host {
	a := apply.Host{GPUs: h.agent.For(holder), Runtimes: map[string]apply.Runtime{}}
	for name, runtime := range h.runtimes(owner) {
		a.Runtimes[name] = runtime
	}
	if h.engine != nil {
		a.Images = h.docker(owner)
	}
	return a
}

// hostOf finds the block of a host.
func (p *Project) hostOf(name string) (config.Host, error) {
	for _, c := range p.Intent.Hosts {
		if c.Name == name {
			return c, nil
		}
	}
	return config.Host{}, fmt.Errorf("the configuration has no host %q; put its block back", name)
}

func (p *Project) hostNames() []string {
	var names []string
	for _, c := range p.Intent.Hosts {
		names = append(names, c.Name)
	}
	return names
}

// Runtime gives the runtime that a session is in, for commands that go into it.
func (p *Project) Runtime(ctx context.Context, s resource.PriorSession, prior resource.Prior) (Runtime, error) {
	c, err := p.hostOf(s.Slice.Host)
	if err != nil {
		return nil, err
	}
	h, err := p.connect(ctx, c, prior)
	if err != nil {
		return nil, err
	}
	return h.runtimes(prior.Owner())[s.Runtime], nil
}

// Used tells what each session used of its GPU's memory so far, as far as that can
// be told: not of one that does not count.
func (p *Project) Used(prior resource.Prior) map[resource.Address]resource.Use {
	all := map[resource.Address]resource.Use{}
	for _, s := range prior.Sessions {
		h, open := p.hosts[s.Slice.Host]
		if !open {
			continue
		}
		runtime, there := h.runtimes(prior.Owner())[s.Runtime]
		if !there {
			continue
		}
		if usage, err := runtime.Usage(s.ID); err == nil {
			all[s.Address] = usage.Use()
		}
	}
	return all
}

// Containers gives the Docker runtime that a session is in; one that runs as a
// process is an error.
func (p *Project) Containers(ctx context.Context, s resource.PriorSession, prior resource.Prior) (docker.Runtime, error) {
	runtime, err := p.Runtime(ctx, s, prior)
	if err != nil {
		return docker.Runtime{}, err
	}
	containers, ok := runtime.(docker.Runtime)
	if !ok {
		return docker.Runtime{}, fmt.Errorf("%s runs as a process of this machine, not in a container; cosplay exec %s -- COMMAND runs something in it", s.Address, s.Address.Short())
	}
	return containers, nil
}

// foldersOf is where the session folders of a state on a host are, in the
// project's folder: those of one state apart from another's.
func foldersOf(dir, statePath, host string) string {
	name := "default"
	if statePath != filepath.Join(dir, state.FileName) {
		sum := sha256.Sum256([]byte(statePath))
		name = hex.EncodeToString(sum[:6])
	}
	return filepath.Join(dir, scratchDir, "sessions", name, host)
}
