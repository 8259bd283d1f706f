// Package machine is this computer, as a project uses it: the hosts that are open, with
// their agents and runtimes, and the user who runs cosplay.
package machine

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
	_ "cosplay/internal/runtime/all" // the registered runtimes
	"cosplay/internal/runtime/docker"
	"cosplay/internal/runtime/process"
	"cosplay/internal/sim"
	"cosplay/internal/state"
)

// ScratchDir is the project's own folder for what can be made anew: simulated
// hosts and session folders.
const ScratchDir = ".cosplay"

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

// ContainersSuffix ends the name of the folder of those sessions that run in
// containers.
const ContainersSuffix = ".containers"

// Machine has the open hosts of a project. Close ends their agents.
type Machine struct {
	Dir     string   // the project's folder, absolute
	State   string   // path of the project's state
	Version string   // of cosplay
	Hold    *os.File // open in each agent that starts, as long as it lives; may be nil

	hosts  map[string]*Host
	engine *docker.Engine // nil until a host needs it
}

// Host is an open host.
type Host struct {
	Config  config.Host
	Agent   *agent.Client
	Library string // NVML's; "" is the system's
	Rooted  bool   // only root changes it, and cosplay does not run as root
	Folders string // of the sessions, by runtime

	simDir  string         // of a simulated host
	runtime string         // of new sessions
	engine  *docker.Engine // nil where no session needs one
	version string         // of cosplay
}

// Open connects to a host; its agent starts with the first question. A simulated host is
// created when it is first needed.
func (m *Machine) Open(c config.Host) (*Host, error) {
	if h, ok := m.hosts[c.Name]; ok {
		return h, nil
	}
	h := &Host{Config: c, Library: c.NVML, Folders: FoldersOf(m.Dir, m.State, c.Name), version: m.Version}
	if c.Simulate != "" {
		h.simDir = m.SimDir(c.Name)
		if err := ensureSimulated(h.simDir, c); err != nil {
			return nil, err
		}
		h.Library = sim.LibraryPath(h.simDir)
	}
	options := agent.Options{Library: h.Library, Ledger: m.Book(c).Dir, User: UserName(), Hold: m.Hold}
	h.Rooted = options.Ledger == ledger.SystemDir && os.Geteuid() != 0
	options.Privileged = h.Rooted
	h.Agent = agent.New(options)
	if m.hosts == nil {
		m.hosts = map[string]*Host{}
	}
	m.hosts[c.Name] = h
	return h, nil
}

// Hosts are the open hosts, by name.
func (m *Machine) Hosts() map[string]*Host { return m.hosts }

// Rest ends the agents until they are needed again: a command that enters a session may
// stay there for days.
func (m *Machine) Rest() {
	for _, h := range m.hosts {
		_ = h.Agent.Close()
	}
}

// Close ends the agents and closes all hosts.
func (m *Machine) Close() {
	m.Rest()
	m.hosts = nil
	if m.engine != nil {
		_ = m.engine.Close()
		m.engine = nil
	}
}

// ledgerDir is the folder of a host's ledger: of a simulated host its own. A host whose
// configuration allows no change needs none.
func ledgerDir(c config.Host, library string) string {
	if dir := filepath.Dir(library); library != "" && sim.Is(dir) {
		return dir
	}
	if c.Manage == (config.Manage{}) {
		return ""
	}
	return ledger.SystemDir
}

// LedgerDir is the folder of the ledger of an open host.
func (h *Host) LedgerDir() string { return ledgerDir(h.Config, h.Library) }

// HasEngine reports whether the host is connected to a container engine.
func (h *Host) HasEngine() bool { return h.engine != nil }

// NewRuntime is the runtime of new sessions; "" until the host is connected.
func (h *Host) NewRuntime() string { return h.runtime }

// Book is the ledger of a host, which need not be open.
func (m *Machine) Book(c config.Host) ledger.Book {
	library := c.NVML
	if c.Simulate != "" {
		library = sim.LibraryPath(m.SimDir(c.Name))
	}
	return ledger.Book{Dir: ledgerDir(c, library)}
}

// Connect opens a host with the engine that its sessions need, and decides which runtime
// new sessions have.
func (m *Machine) Connect(ctx context.Context, c config.Host, prior resource.Prior) (*Host, error) {
	h, err := m.Open(c)
	if err != nil || h.runtime != "" {
		return h, err
	}
	held := heldRuntimes(c.Name, prior)
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
	if err := m.ConnectEngine(ctx, h); err != nil {
		h.runtime = ""
		return nil, err
	}
	return h, nil
}

// ConnectEngine gives a host the engine that its containers run in.
func (m *Machine) ConnectEngine(ctx context.Context, h *Host) (err error) {
	if m.engine == nil {
		if m.engine, err = docker.Connect(ctx); err != nil {
			return fmt.Errorf("host %s: %w", h.Config.Name, err)
		}
	}
	h.engine = m.engine
	return nil
}

// NeedsEngine reports whether a project may have containers on a host.
func (m *Machine) NeedsEngine(h *Host, known resource.Prior) bool {
	if _, err := os.Stat(h.Folders + ContainersSuffix); err == nil {
		return true
	}
	held := slices.Contains(heldRuntimes(h.Config.Name, known), resource.RuntimeDocker)
	hardware := h.Config.Runtime == config.RuntimeAuto && h.Config.Simulate == "" && docker.Installed()
	return held || hardware || h.Config.Runtime == resource.RuntimeDocker
}

// ShareEngine gives a host the engine if another host has needed it.
func (m *Machine) ShareEngine(h *Host) {
	if h.engine == nil {
		h.engine = m.engine
	}
}

// Remains is what an owner's sessions have left on a host, as far as its runtimes can read
// it; known is the owner's state. Of the folders of process sessions no lineage is known,
// so the caller says whether they count.
func (m *Machine) Remains(ctx context.Context, h *Host, known resource.Prior, owner resource.Owner, folders bool) (all []resource.Remains, failures []error) {
	if h.engine == nil && m.NeedsEngine(h, known) {
		if err := m.ConnectEngine(ctx, h); err != nil {
			failures = append(failures, err)
		}
	}
	for name, runtime := range h.Runtimes(owner) {
		if !folders && name == resource.RuntimeProcess {
			continue
		}
		found, err := runtime.Remains(ctx)
		if err != nil {
			failures = append(failures, err)
		}
		all = append(all, found...)
	}
	return all, failures
}

// As is the host as another project has it: with its name for the host, and its folders.
func (h *Host) As(name, dir, statePath string) *Host {
	other := *h
	other.Config.Name, other.Folders = name, FoldersOf(dir, statePath, name)
	return &other
}

// heldRuntimes are those that sessions of a host run in, Docker first.
func heldRuntimes(host string, prior resource.Prior) []string {
	var held []string
	for _, s := range prior.Sessions {
		if s.Slice.Host == host && !slices.Contains(held, s.Runtime) {
			held = append(held, s.Runtime)
		}
	}
	slices.Sort(held)
	return held
}

// Runtimes are where an owner's sessions run on the host.
func (h *Host) Runtimes(owner resource.Owner) map[string]Runtime {
	all := map[string]Runtime{resource.RuntimeProcess: process.Runtime{Base: h.Folders, Library: h.Library, Key: owner.Key, Serial: owner.Serial, Version: h.version}}
	if h.engine != nil {
		all[resource.RuntimeDocker] = h.Docker(owner)
	}
	return all
}

// Docker is the runtime of an owner's containers on the host.
func (h *Host) Docker(owner resource.Owner) docker.Runtime {
	return docker.Runtime{Engine: h.engine, Base: h.Folders + ContainersSuffix, Host: h.Config.Name, Owner: owner, Library: h.Library, SimDir: h.simDir, Version: h.version}
}

// CUDA is the path of the host's CUDA driver; "" is none.
func (h *Host) CUDA() string {
	library := h.Library
	if library == "" {
		library, _ = disguise.SystemLibrary() // without it CUDA's may still be there
	}
	return disguise.CUDALibrary(library)
}

// NoCUDA says what a host lacks that has no CUDA driver.
const NoCUDA = "there is no libcuda.so.1: sessions show their target to NVML alone, and nothing holds their VRAM cap"

// Runs reports whether a process is known to run in a container of a runtime.
func Runs(name string, pid int, c resource.Container) bool {
	driver, known := runtime.Named(name)
	return known && driver.Runs(pid, c)
}

// Source is what observe reads of the host.
func (h *Host) Source(owner resource.Owner, prior resource.Prior) observe.Source {
	s := observe.Source{Name: h.Config.Name, Simulated: h.Config.Simulate, Runtime: h.runtime, GPUs: h.Agent}
	for _, runtime := range h.Runtimes(owner) {
		s.Containers = append(s.Containers, runtime)
	}
	if h.engine != nil {
		s.Engine, s.Strays = h.Docker(owner), h.Docker(owner)
	}
	for _, one := range prior.Sessions {
		if one.Slice.Host == h.Config.Name {
			s.Known = append(s.Known, one.ID)
		}
	}
	return s
}

// ForApply is what apply changes of the host.
func (h *Host) ForApply(owner resource.Owner, holder resource.Holder) apply.Host {
	a := apply.Host{GPUs: h.Agent.For(holder), Runtimes: map[string]apply.Runtime{}}
	for name, runtime := range h.Runtimes(owner) {
		a.Runtimes[name] = runtime
	}
	if h.engine != nil {
		a.Images = h.Docker(owner)
	}
	return a
}

// FoldersOf is where the session folders of a state on a host are, in the
// project's folder: those of one state apart from another's.
func FoldersOf(dir, statePath, host string) string {
	name := "default"
	if statePath != filepath.Join(dir, state.FileName) {
		sum := sha256.Sum256([]byte(statePath))
		name = hex.EncodeToString(sum[:6])
	}
	return filepath.Join(dir, ScratchDir, "sessions", name, host)
}
