package machine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/prose"
	"cosplay/internal/remote"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/state"
)

// Elsewhere is where hosts are whose blocks do not say it; "" is this machine. Only tests set it.
var Elsewhere string

// errand is what cosplay on another machine has to know of a host of this project.
type errand struct {
	Key       string `json:"key"`           // tells the project's files from those of others
	Run       string `json:"run,omitempty"` // of a session of cosplay run: its name
	Name      string `json:"name"`          // of the host in the configuration; "" is the machine for its records
	Simulate  string `json:"simulate,omitempty"`
	Compute   string `json:"compute,omitempty"`
	NVML      string `json:"nvml,omitempty"`
	Runtime   string `json:"runtime,omitempty"`
	Unmanaged bool   `json:"unmanaged,omitempty"` // nothing of it may be changed

	// Of tests, which are the other machine as well:
	Dir   string `json:"dir,omitempty"`
	State string `json:"state,omitempty"`
	Sims  string `json:"sims,omitempty"`
}

// errand is the text for the agent of a host on another machine, of letters and digits, which no shell changes.
func (m *Machine) errand(c config.Host) string {
	of, run := m.State, ""
	if dir := filepath.Dir(m.State); filepath.Dir(dir) == RunsOf(m.Dir) { // it is of the project in the folder
		of, run = filepath.Join(m.Dir, state.FileName), filepath.Base(dir)
	}
	sum := sha256.Sum256([]byte(ID() + "\x00" + of))
	e := errand{Key: hex.EncodeToString(sum[:8]), Run: run, Name: c.Name, Simulate: c.Simulate, Compute: c.Compute, NVML: c.NVML, Runtime: c.Runtime, Unmanaged: c.Manage == config.Manage{}}
	if Elsewhere != "" {
		e.Dir, e.State, e.Sims = m.Dir, m.State, m.Sims
	}
	text, _ := json.Marshal(e) // it has texts and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

// sshTo is the command that runs others where a host block connects to.
func sshTo(connect string, options ...string) []string {
	to, _ := url.Parse(connect) // the configuration has checked it
	command := append([]string{"ssh"}, options...)
	if port := to.Port(); port != "" {
		command = append(command, "-p", port)
	}
	destination := to.Hostname()
	if name := to.User.Username(); name != "" {
		destination = name + "@" + destination
	}
	return append(command, "--", destination)
}

// Options of ssh. Without a terminal it asks nothing, and its keepalives end it where the machine is lost. The user's
// forwardings are for the user's own connections.
var (
	alive       = []string{"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "LogLevel=ERROR", "-o", "ClearAllForwardings=yes"}
	unattended  = append([]string{"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}, alive...)
	interactive = append([]string{"-tt"}, alive...)
)

// far makes a host one of another machine.
func (m *Machine) far(h *Host) {
	h.state, h.dir = m.State, m.Dir
	far := agent.Far{Command: sshTo(h.Config.Connect, unattended...), Shown: strings.ReplaceAll(strings.Join(sshTo(h.Config.Connect), " "), "-- ", ""), For: m.errand(h.Config)}
	if Elsewhere == "" {
		far.Machine, far.State = ID(), m.State
	}
	h.options = agent.Options{Far: &far, TimeSlices: h.Config.TimeSlice != ""}
	h.Agent = agent.New(h.options)
	h.remote = &remote.Machine{Ask: h.Agent.Sessions, // by the child that reads
		Run: func(program string, onTerminal bool) []string {
			command := sshTo(h.Config.Connect, unattended...)
			if onTerminal {
				command = sshTo(h.Config.Connect, interactive...)
			}
			return far.Cosplay(command, "--program", program)
		}}
}

// farOpen opens a runtime of a host on another machine.
func (h *Host) farOpen(d runtime.Driver) func(runtime.Host) runtime.Runtime {
	return func(on runtime.Host) runtime.Runtime { return remote.Open(*h.remote, d, on.Owner, h.here(on)) }
}

// here is a host as its runtimes see it, with the folders of this machine.
func (h *Host) here(on runtime.Host) runtime.Host {
	on.Folders = FoldersOf(h.dir, h.state, h.Config.Name)
	return on
}

// Login is how users log into the sessions of a host, with files of this machine.
func (h *Host) Login(d runtime.Driver, owner resource.Owner) runtime.Login {
	on := h.For(owner)
	if h.remote != nil {
		on = h.here(on)
	}
	return d.Login(on)
}

// Elsewhere reports whether a host is on another machine.
func (m *Machine) Elsewhere(c config.Host) bool { return cmp.Or(c.Connect, Elsewhere) != "" }

// KeyOn is the key by which a state owns what is on a host.
func (m *Machine) KeyOn(c config.Host, key string) string {
	if m.Elsewhere(c) {
		return resource.KeyElsewhere(c.Name, key)
	}
	return key
}

// IsOpen reports whether a host is open.
func (m *Machine) IsOpen(c config.Host) bool { return m.hosts[c.Name] != nil }

// refusal is why a machine could not be reached.
type refusal struct {
	err error
	at  time.Time
}

// greetAgain is how long a machine that could not be reached is left alone: each try may take the time of ssh.
const greetAgain = 30 * time.Second

// Greet opens the hosts of other machines, all at once: each takes the time of a connection. Until the next Greet, Open of
// a host reports its error.
func (m *Machine) Greet(hosts []config.Host) {
	var far []*Host
	for _, c := range hosts {
		c.Connect = cmp.Or(c.Connect, Elsewhere)
		if !m.IsOpen(c) && c.Connect != "" && time.Since(m.refused[c.Name].at) > greetAgain {
			far = append(far, m.host(c))
		}
	}
	errs := make([]error, len(far))
	var greeted sync.WaitGroup
	for i, h := range far {
		greeted.Go(func() { errs[i] = h.settle(context.Background()) })
	}
	greeted.Wait()
	if m.refused == nil {
		m.refused = map[string]refusal{}
	}
	for i, h := range far {
		if errs[i] != nil {
			m.refused[h.Config.Name] = refusal{errs[i], time.Now()}
		} else {
			delete(m.refused, h.Config.Name)
			m.keep(h)
		}
	}
}

// settle asks the machine of a host what it is.
func (h *Host) settle(ctx context.Context) (err error) {
	if h.remote == nil {
		return nil
	}
	if ID() == "" {
		return prose.Advice{What: fmt.Sprintf("host %s: this machine has no ID, by which the other one could tell its projects from those of others", h.Config.Name),
			Fix: "make /etc/machine-id: sudo systemd-machine-id-setup, or uuidgen -r | tr -d - | sudo tee /etc/machine-id"}
	}
	h.Place, err = h.remote.Place(ctx)
	if far, is := errors.AsType[*agent.FarError](err); is && far.Ours {
		return err // it names the host
	}
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Config.Name, err)
	}
	if h.Place.Version != h.version {
		return fmt.Errorf("host %s: %w", h.Config.Name, h.options.Far.OtherVersion(h.version, h.Place.Version))
	}
	h.options.Far.Here, h.options.Far.There = resource.Holder{User: UserName(), UID: UserID()}, h.Place.User.UID
	h.Rooted, h.Folders, h.Library = h.Place.Rooted, h.Place.Folders, h.Place.Library
	if h.options.Privileged = h.Rooted; h.Rooted {
		h.Agent = h.Agent.WithRoot()
	}
	return nil
}

// farAs is As for a host on another machine, whose agent serves one project.
func (h *Host) farAs(name, dir, statePath string) *Host {
	for _, other := range h.others {
		if other.Config.Name == name && other.state == statePath {
			return other
		}
	}
	m := Machine{Dir: dir, State: statePath, Version: h.version}
	if h.Place.Sim != "" {
		m.Sims = filepath.Dir(h.Place.Sim)
	}
	block := h.Config
	block.Name = name
	other := m.host(block)
	if err := other.settle(context.Background()); err != nil { // its questions have the error
		other.remote.Ask = func(context.Context, []byte, time.Duration) ([]byte, error) { return nil, err }
	}
	h.others = append(h.others, other)
	return other
}

// Subject is the user of the host's GPUs, as the rules of its admin name users.
func (h *Host) Subject() agent.Subject {
	if h.remote != nil {
		return agent.Subject{Name: h.Place.User.Name, UID: h.Place.User.UID, Groups: h.Place.Groups}
	}
	return agent.SubjectOf(os.Getuid())
}

// Readdress writes the new address of a session where Remains reads it.
func (h *Host) Readdress(ctx context.Context, s resource.PriorSession, owner resource.Owner, to resource.Address) error {
	if h.remote != nil {
		return remote.Runtime{Machine: *h.remote, Name: s.Runtime, Owner: owner}.Readdress(ctx, s.ID, to)
	}
	if d, registered := runtime.Named(s.Runtime); registered {
		return d.Readdress(h.For(owner), s.ID, to)
	}
	return nil
}

// Errand is a host of a project on another machine, which asks this one.
type Errand struct {
	machine   *Machine
	host      *Host
	workspace string // of sessions whose blocks name none
	root      string // folder of the projects of other machines
}

// NewErrand opens the host that a client names.
func NewErrand(text, version string) (*Errand, error) {
	var e errand
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err != nil || len(e.Key) != 16 || strings.Trim(e.Key, "0123456789abcdef") != "" || !isFolder(e.Name) || !isFolder(e.Run) {
		return nil, fmt.Errorf("%.80q is no errand of cosplay", text)
	}
	block := config.Host{Name: e.Name, Simulate: e.Simulate, Compute: e.Compute, NVML: e.NVML, Runtime: cmp.Or(e.Runtime, config.RuntimeAuto)}
	if !e.Unmanaged {
		block.Manage = config.ManageAll()
	}
	dir := filepath.Join(errands(), e.Key, e.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, prose.Advice{What: fmt.Sprintf("host %s: the files of sessions cannot be written: %v", e.Name, err), Fix: "make room, or give the user a home that they may write to"}
	}
	path := filepath.Join(dir, state.FileName)
	if e.Run != "" {
		path = filepath.Join(RunsOf(dir), e.Run, state.FileName)
	}
	m := &Machine{Dir: cmp.Or(e.Dir, dir), State: cmp.Or(e.State, path), Sims: e.Sims, Version: version}
	h, err := m.begin(block)
	workspace, root := filepath.Join(dir, "workspace"), errands()
	if e.Dir != "" {
		workspace, root = e.Dir, filepath.Join(e.Dir, ScratchDir)
	}
	return &Errand{machine: m, host: h, workspace: workspace, root: root}, err
}

// isFolder reports whether a name can be that of a folder, or is "".
func isFolder(name string) bool {
	return !strings.ContainsAny(name, "/\x00") && name != ".." && name != "."
}

// begin opens a host for its client. The machine for its records has no sessions, and its GPUs are not asked.
func (m *Machine) begin(block config.Host) (*Host, error) {
	if block.Name == "" {
		return m.host(block), nil
	}
	return m.Open(block)
}

// errands is the folder of the sessions that other machines have here.
func errands() string { return stateDir("remote") }

// Detached is the folder of the projects of cosplay run --detach, each a folder with the name of its session.
func Detached() string { return stateDir("sessions") }

// stateDir is a folder for what cosplay keeps outside of the user's projects.
func stateDir(name string) string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "cosplay", name)
	}
	return filepath.Join(HomeDir(), ".local", "state", "cosplay", name)
}

func (e *Errand) server() remote.Server {
	who, _ := Invoker()
	return remote.Server{Root: e.root, Programs: filepath.Join(e.machine.Dir, ScratchDir, "programs", filepath.Base(filepath.Dir(e.host.Folders)), filepath.Base(e.host.Folders)),
		Place: remote.Place{Runtime: e.host.auto(), Rooted: e.host.Rooted, User: who.User, Groups: agent.SubjectOf(who.UID).Groups, Sessions: e.host.SessionFolders(), Workspace: e.workspace,
			Library: e.host.Library, Ledger: e.host.options.Ledger, CUDA: e.host.CUDA(), Sim: e.host.simDir, Folders: e.host.Folders, Version: e.machine.Version},
		Open: func(name string, owner resource.Owner) (runtime.Runtime, error) {
			if err := e.machine.connect(context.Background(), e.host, name); err != nil {
				return nil, cmp.Or(errors.Unwrap(err), err) // without the host, which the client names
			}
			return e.host.Runtimes(owner)[name], nil
		},
		Readdress: func(name, session string, owner resource.Owner, to resource.Address) error {
			return e.host.Readdress(context.Background(), resource.PriorSession{Session: resource.Session{ID: session, Runtime: name}}, owner, to)
		}}
}

// Serve answers the client until its questions end. Of a host that only root changes, change passes them to root's agent.
func (e *Errand) Serve(in io.Reader, out io.Writer, change bool) error {
	if change && e.host.Rooted {
		return agent.Relay(in, out, e.host.options)
	}
	return agent.Serve(in, out, agent.Service{Library: e.host.Library, Ledger: e.host.options.Ledger, Sessions: e.server().Answer})
}

// Run runs a program that the client has asked for, and returns its exit code.
func (e *Errand) Run(ctx context.Context, program string, streams runtime.Streams) (int, error) {
	return e.server().Start(ctx, program, streams)
}
