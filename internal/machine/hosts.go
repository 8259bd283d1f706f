// Package machine gives a project access to this computer: the open hosts with their agents and runtimes, and the
// user who runs cosplay.
package machine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"cosplay/driver"
	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/disguise"
	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/remote"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	_ "cosplay/internal/runtime/all" // the registered runtimes
	"cosplay/internal/sim"
	"cosplay/internal/state"
)

// ScratchDir is the project's folder for files that cosplay can recreate: simulated hosts and session folders.
const ScratchDir = ".cosplay"

// RunsOf is the folder, below that of a project, that has a folder with a state for each session of cosplay run: a separate
// project with the hosts of this one.
func RunsOf(dir string) string { return filepath.Join(dir, ScratchDir, "runs") }

// Machine has the open hosts of a project. Close ends their agents.
type Machine struct {
	Dir     string // the project's folder, absolute
	State   string // path of the project's state
	Sims    string // folder of the simulated hosts; "" is that of the project
	Version string // of cosplay

	hosts       map[string]*Host
	refused     map[string]refusal            // of machines that Greet did not reach
	unopened    map[string]*Host              // whose agents were asked for records
	connections map[string]runtime.Connection // of runtimes, by name
	reached     runtime.Connection            // by Reach; nil is none
}

// Host is an open host.
type Host struct {
	Config  config.Host
	Agent   *agent.Client
	Library string       // NVML's; "" is the system's
	Rooted  bool         // only root changes it, and cosplay does not run as root
	Folders string       // of the sessions, by runtime; on the machine of the host
	Place   remote.Place // of another machine

	options agent.Options                                 // of its agents
	simDir  string                                        // of a simulated host
	runtime string                                        // of new sessions
	opens   map[string]func(runtime.Host) runtime.Runtime // of the runtimes that are connected, by name
	version string                                        // of cosplay
	remote  *remote.Machine                               // nil for this machine
	others  []*Host                                       // as other projects have it
	state   string                                        // path of the project's state, of a host on another machine
	dir     string                                        // the project's folder, of a host on another machine
}

// Open connects to a host; its agent starts with the first question. A simulated host is
// created when it is first needed.
func (m *Machine) Open(c config.Host) (*Host, error) {
	if h, ok := m.hosts[c.Name]; ok {
		return h, nil
	}
	if r := m.refused[c.Name]; r.err != nil {
		return nil, r.err
	}
	c.Connect = cmp.Or(c.Connect, Elsewhere)
	if c.Connect == "" && !driver.Here {
		return nil, notHere(c)
	}
	if c.Simulate != "" && c.Connect == "" {
		if err := m.simulation(c).ensure(); err != nil {
			return nil, err
		}
	}
	h := m.host(c)
	if err := h.settle(context.Background()); err != nil {
		return nil, err
	}
	m.keep(h)
	return h, nil
}

// notHere is the error of a host on this machine, for a cosplay that reaches hosts on others alone.
func notHere(c config.Host) error {
	where := fmt.Sprintf("host %q", c.Name)
	if at := c.Ranges.Decl; at.Filename != "" {
		where += fmt.Sprintf(" (%s:%d)", at.Filename, at.Start.Line)
	}
	return prose.Advice{What: where + " is on this machine, but " + driver.NotHere, Cause: driver.ErrNotHere,
		Fix: `write connect = "ssh://USER@MACHINE" into the host block, which names a machine with Linux`}
}

func (m *Machine) keep(h *Host) {
	if m.hosts == nil {
		m.hosts = map[string]*Host{}
	}
	m.hosts[h.Config.Name] = h
}

// host is a host with an agent that has not started. A simulated host need not exist.
func (m *Machine) host(c config.Host) *Host {
	h := &Host{Config: c, Library: c.NVML, Folders: FoldersOf(m.Dir, m.State, c.Name), version: m.Version, opens: map[string]func(runtime.Host) runtime.Runtime{}}
	if c.Connect != "" {
		m.far(h)
	}
	for _, d := range runtime.Drivers() {
		switch {
		case d.Open == nil:
		case h.remote != nil:
			h.opens[d.Name] = h.farOpen(d)
		default:
			h.opens[d.Name] = d.Open
		}
	}
	if h.remote != nil {
		return h
	}
	if c.Simulate != "" {
		h.simDir = m.SimDir(c.Name)
		h.Library = sim.LibraryPath(h.simDir)
	}
	h.options = agent.Options{Library: h.Library, Ledger: m.Ledger(c), User: UserName(), TimeSlices: c.TimeSlice != ""}
	h.Rooted = h.options.Ledger == ledger.SystemDir && os.Geteuid() != 0
	h.options.Privileged = h.Rooted
	h.Agent = agent.New(h.options)
	return h
}

// System is this machine for its records: no block of a configuration has an empty name.
var System = config.Host{Manage: config.ManageAll()}

// Records is the agent of a host for its records, which need neither GPUs nor a simulated host that exists.
func (m *Machine) Records(c config.Host) *agent.Client {
	c.Connect = cmp.Or(c.Connect, Elsewhere)
	if h, opened := m.hosts[c.Name]; opened {
		return h.Agent
	}
	if m.unopened[c.Name] == nil {
		if m.unopened == nil {
			m.unopened = map[string]*Host{}
		}
		h := m.host(c)
		_ = h.settle(context.Background()) // the next question has the error
		m.unopened[c.Name] = h
	}
	return m.unopened[c.Name].Agent
}

// Notify calls wake after events of the host's GPUs, until the context ends.
func (h *Host) Notify(ctx context.Context, wake func()) { h.options.Notify(ctx, wake) }

// NewAgent makes another agent of the host.
func (h *Host) NewAgent() *agent.Client { return agent.New(h.options) }

// Hosts are the open hosts, by name.
func (m *Machine) Hosts() map[string]*Host { return m.hosts }

// Rest ends the agents until they are needed again: a command that enters a session may
// stay there for days.
func (m *Machine) Rest() {
	for _, h := range m.all() {
		for _, one := range append(h.others, h) {
			_ = one.Agent.Close()
		}
	}
}

func (m *Machine) all() []*Host {
	return slices.AppendSeq(slices.Collect(maps.Values(m.hosts)), maps.Values(m.unopened))
}

// Leave is Rest that does not wait until the agents have ended; Close does.
func (m *Machine) Leave() {
	for _, h := range m.all() {
		for _, one := range append(h.others, h) {
			go func() { _ = one.Agent.Close() }()
		}
	}
}

// Close ends the agents and closes all hosts.
func (m *Machine) Close() {
	m.Rest()
	for _, c := range m.connections {
		_ = c.Close()
	}
	if m.reached != nil {
		_ = m.reached.Close()
	}
	m.hosts, m.unopened, m.connections, m.reached = nil, nil, nil, nil
}

// NewRuntime is the runtime of new sessions; "" until the host is connected.
func (h *Host) NewRuntime() string { return h.runtime }

// Ledger is the folder of the ledger of a host, which need not be open: of a simulated host its own. A host whose
// configuration allows no change needs none. That of another machine is named by where the machine is.
func (m *Machine) Ledger(c config.Host) string {
	c.Connect = cmp.Or(c.Connect, Elsewhere)
	if c.Connect != "" {
		return c.Connect
	}
	library := c.NVML
	if c.Simulate != "" {
		library = sim.LibraryPath(m.SimDir(c.Name))
	}
	if dir := filepath.Dir(library); library != "" && sim.Is(dir) {
		return dir
	}
	if c.Manage == (config.Manage{}) {
		return ""
	}
	return ledger.SystemDir
}

// LacksPath is the file with the features that cosplay does without on a GPU.
func (h *Host) LacksPath(uuid string) string {
	return ledger.Book{Dir: cmp.Or(h.Place.Ledger, h.options.Ledger)}.LacksPath(uuid)
}

// Connect opens a host with the runtimes that its sessions need, and decides which
// runtime new sessions have.
func (m *Machine) Connect(ctx context.Context, c config.Host, prior resource.Prior) (*Host, error) {
	c.Connect = cmp.Or(c.Connect, Elsewhere)
	h, err := m.Open(c)
	if err != nil || h.runtime != "" {
		return h, err
	}
	held := heldRuntimes(c.Name, prior)
	name := c.Runtime
	switch {
	case name != config.RuntimeAuto:
	case len(held) > 0: // decided once, and kept
		name = held[0]
	default:
		name = h.auto()
	}
	for _, needed := range append(held, name) {
		if err := m.connect(ctx, h, needed); err != nil {
			return nil, err
		}
	}
	h.runtime = name
	return h, nil
}

// Reach opens a host, and the runtime of one session on it, for commands in the session. The runtime is nil where this is
// no faster than Connect. Of a host whose GPUs are not asked, nothing else is opened.
func (m *Machine) Reach(ctx context.Context, c config.Host, name string, owner resource.Owner, asked bool) (h *Host, in runtime.Runtime, err error) {
	c.Connect = cmp.Or(c.Connect, Elsewhere)
	d, registered := runtime.Named(name)
	if !registered || d.Reach == nil || c.Connect != "" {
		return nil, nil, nil
	}
	if h = m.host(c); asked {
		if h, err = m.Open(c); err != nil {
			return nil, nil, err
		}
	}
	reached, err := d.Reach(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.reached = reached
	return h, m.reached.Open(h.For(owner)), nil
}

// connect gives a host a runtime.
func (m *Machine) connect(ctx context.Context, h *Host, name string) error {
	d, registered := runtime.Named(name)
	switch {
	case h.opens[name] != nil:
		return nil
	case !registered:
		return fmt.Errorf("host %s: sessions run in runtime %q, which this cosplay does not have", h.Config.Name, name)
	case h.remote != nil:
		if err := (remote.Runtime{Machine: *h.remote, Name: name}).Connect(ctx); err != nil {
			return fmt.Errorf("host %s: %w", h.Config.Name, err)
		}
		h.opens[name] = h.farOpen(d)
		return nil
	case m.connections[name] == nil:
		c, err := d.Connect(ctx)
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Config.Name, err)
		}
		if m.connections == nil {
			m.connections = map[string]runtime.Connection{}
		}
		m.connections[name] = c
	}
	h.opens[name] = m.connections[name].Open
	return nil
}

// mayUse reports whether a project may have sessions of a runtime on a host.
func (h *Host) mayUse(d runtime.Driver, known resource.Prior) bool {
	if _, err := os.Stat(h.folder(d)); err == nil && h.remote == nil {
		return true
	}
	chosen := h.Config.Runtime == d.Name || h.Config.Runtime == config.RuntimeAuto && h.mayChoose(d)
	return chosen || slices.Contains(heldRuntimes(h.Config.Name, known), d.Name)
}

// auto is the runtime of new sessions where the block leaves the choice to cosplay.
func (h *Host) auto() string {
	if h.remote != nil {
		return h.Place.Runtime
	}
	return runtime.Auto(h.Config.Simulate != "").Name
}

// mayChoose reports whether such a block may have chosen a runtime at some time.
func (h *Host) mayChoose(d runtime.Driver) bool {
	if h.remote != nil {
		return h.Place.Runtime == d.Name
	}
	return d.Auto(h.Config.Simulate != "")
}

// MPS says which MPS daemons a reading of the host finds: those of a state, and all of the user's.
func (h *Host) MPS(prior resource.Prior) resource.MPSSearch {
	search := resource.MPSSearch{Key: cmp.Or(h.options.Ledger, h.Folders)}
	for _, g := range prior.GPUs {
		for _, m := range g.All() {
			if g.Host == h.Config.Name {
				search.Known = append(search.Known, m.Folder)
			}
		}
	}
	return search
}

// Share gives a host the runtimes that other hosts have connected.
func (m *Machine) Share(h *Host) {
	if h.remote != nil {
		for _, d := range runtime.Drivers() { // it is connected over there when it is asked
			h.opens[d.Name] = h.farOpen(d)
		}
		return
	}
	for name, c := range m.connections {
		h.opens[name] = c.Open
	}
}

// As is the host as another project has it: with its name for the host, and its folders.
func (h *Host) As(name, dir, statePath string) *Host {
	if h.remote != nil {
		return h.farAs(name, dir, statePath)
	}
	other := *h
	other.Config.Name, other.Folders, other.opens = name, FoldersOf(dir, statePath, name), maps.Clone(h.opens)
	return &other
}

// heldRuntimes are those that sessions of a host run in.
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

// For is the host as its runtimes see it, for the sessions of an owner.
func (h *Host) For(owner resource.Owner) runtime.Host {
	if h.remote != nil {
		owner.Key = resource.KeyElsewhere(h.Config.Name, owner.Key)
	}
	return runtime.Host{Name: h.Config.Name, Folders: h.Folders, Owner: owner, Library: h.Library, SimDir: h.simDir, Version: h.version}
}

func (h *Host) folder(d runtime.Driver) string { return h.Folders + d.FolderSuffix }

// SessionFolders are where the runtimes keep the files of the host's sessions.
func (h *Host) SessionFolders() []string {
	if h.remote != nil {
		return nil // not of this machine
	}
	return prose.Each(runtime.Drivers(), h.folder)
}

// Runtimes are where an owner's sessions run on the host, by name.
func (h *Host) Runtimes(owner resource.Owner) map[string]runtime.Runtime {
	all := map[string]runtime.Runtime{}
	for name, open := range h.opens {
		all[name] = open(h.For(owner))
	}
	return all
}

// CUDA is the path of the host's CUDA driver; "" is none.
func (h *Host) CUDA() string {
	if h.remote != nil {
		return h.Place.CUDA
	}
	library := h.Library
	if library == "" {
		library, _ = disguise.SystemLibrary() // without it CUDA's may still be there
	}
	return disguise.CUDALibrary(library)
}

// NoCUDA says what a host lacks that has no CUDA driver.
const NoCUDA = "there is no libcuda.so.1: sessions show their target to NVML alone, and nothing holds their VRAM cap"

// Runs reports whether a process is known to run in a container of a runtime.
func Runs(name string, p resource.Process, c resource.Body) bool {
	driver, known := runtime.Named(name)
	return known && driver.Runs(p, c)
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
