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
	"cosplay/internal/shared"
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

// Abandon ends the readings of open hosts that wait for an answer, in other goroutines.
func (m *Machine) Abandon() {
	for _, h := range m.all() {
		for _, one := range append(h.others, h) {
			one.Agent.Abandon()
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

// As is the host as another project has it: with its name for the host, and its folders.
func (h *Host) As(name, dir, statePath string) *Host {
	if h.remote != nil {
		return h.farAs(name, dir, statePath)
	}
	other := *h
	other.Config.Name, other.Folders, other.opens = name, FoldersOf(dir, statePath, name), maps.Clone(h.opens)
	return &other
}

// For is the host as its runtimes see it, for the sessions of an owner.
func (h *Host) For(owner resource.Owner) runtime.Host {
	if h.remote != nil {
		owner.Key = resource.KeyElsewhere(h.Config.Name, owner.Key)
	}
	return runtime.Host{Name: h.Config.Name, Folders: h.Folders, Owner: owner, Library: h.Library, SimDir: h.simDir, Version: h.version}
}

func (h *Host) folder(d runtime.Driver) string { return h.Folders + d.FolderSuffix }

// RemoveShared removes what sessions shared from folders without a session.
func (h *Host) RemoveShared() {
	if h.remote != nil {
		_ = h.remote.Tidy(context.Background()) // the next command tries again
	}
	for _, folder := range h.SessionFolders() {
		shared.Remove(folder)
	}
}

// SessionFolders are where the runtimes keep the files of the host's sessions.
func (h *Host) SessionFolders() []string {
	if h.remote != nil {
		return nil // not of this machine
	}
	return prose.Each(runtime.Drivers(), h.folder)
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
