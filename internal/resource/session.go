package resource

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/prose"
)

// Request decides where a session is placed. While it is unchanged and the session's slice exists, the session stays
// there.
type Request struct {
	Host   string     `json:"host"`
	GPU    string     `json:"gpu,omitempty"` // UUID; "" leaves the choice to placement
	Target string     `json:"target"`        // key of the catalog
	Fit    FitOptions `json:"fit"`

	Sharing       Sharing `json:"sharing,omitempty"`
	Slice         string  `json:"slice,omitempty"`         // the profile of its MIG slice, and its slot after an @; "" leaves the choice to placement
	Fraction      float64 `json:"fraction,omitempty"`      // of the host's own GPU, which is the target then
	Oversubscribe bool    `json:"oversubscribe,omitempty"` // it may share a GPU whose memory is less than the sum of the targets

	GPUs int `json:"gpus,omitempty"` // how many devices it has, each on another GPU; 0 is one
}

// CutSlot divides the slice that a configuration names: "1g.18gb@4" is a 1g.18gb whose first memory slice is at slot 4. The
// slot is -1 where none is named, and placement chooses it.
func CutSlot(slice string) (profile string, slot int) {
	profile, after, named := strings.Cut(slice, "@")
	if slot, err := strconv.Atoi(after); named && err == nil {
		return profile, slot
	}
	return profile, -1
}

// Devices is how many devices the session has.
func (r Request) Devices() int { return max(1, r.GPUs) }

// Sharing is how a session may get its part of a GPU.
type Sharing string

// The kinds of sharing.
const (
	SharingAuto      Sharing = ""                 // a MIG slice or a whole GPU
	SharingMIG       Sharing = "mig"              // a MIG slice
	SharingExclusive Sharing = "exclusive"        // a whole GPU
	SharingTime      Sharing = "time-slice"       // a slice or a whole GPU, whose driver lets its sessions run by turns
	SharingCompute   Sharing = "compute-instance" // a compute instance, in a GPU instance that has those of other sessions, too
	SharingMPS       Sharing = "mps"              // a slice or a whole GPU, of whose SMs NVIDIA's Multi-Process Service gives each session a part
)

// Shares reports whether several sessions may have one GPU, or one GPU instance.
func (s Sharing) Shares() bool { return s == SharingTime || s == SharingMPS || s == SharingCompute }

// On returns a MIG slice as sessions of this kind have it.
func (s Sharing) On(slice Slice) Slice {
	if (s == SharingTime || s == SharingMPS) && !slice.Whole() || s == SharingCompute && slice.Divides() {
		slice.Sharing = s
	}
	return slice
}

// Equal compares two requests by value.
func (r Request) Equal(o Request) bool {
	return reflect.DeepEqual(r, o) // which compares what MaxError points to
}

// Fit is how close a slice at a clock comes to a target.
type Fit struct {
	Profile  string   `json:"profile,omitempty"` // "" is the whole GPU
	ClockMHz int      `json:"clock_mhz"`         // SM clock that the figures are for
	Got      Envelope `json:"got"`
	Want     Envelope `json:"want"`
}

// FP32Ratio is the FP32 rate got over the one wanted: 1 is exact.
func (f Fit) FP32Ratio() float64 { return f.Got.FP32TFLOPS / f.Want.FP32TFLOPS }

// BandwidthRatio is the memory bandwidth got over the one wanted.
func (f Fit) BandwidthRatio() float64 { return f.Got.BandwidthGBs / f.Want.BandwidthGBs }

// TensorRatio is the tensor rate got over the one wanted; 0 where the target has no tensor cores.
func (f Fit) TensorRatio() float64 {
	if f.Want.TensorTFLOPS == 0 {
		return 0
	}
	return f.Got.TensorTFLOPS / f.Want.TensorTFLOPS
}

// Error is the error that the preference keeps small: |ln ratio|, so that half and double are equally wrong. 0.05 is
// about 5 %.
func (f Fit) Error(prefer Preference) float64 {
	off := func(ratio float64) float64 { return math.Abs(math.Log(ratio)) }
	switch prefer {
	case PreferBandwidth:
		return off(f.BandwidthRatio())
	case PreferBalanced:
		return (off(f.FP32Ratio()) + off(f.BandwidthRatio())) / 2
	default:
		return off(f.FP32Ratio())
	}
}

// Program is what runs in a session: attributes that mean the same in every runtime.
type Program struct {
	Command   []string          `json:"command,omitempty"`
	Workspace string            `json:"workspace"` // absolute
	Env       map[string]string `json:"env,omitempty"`
	Strict    bool              `json:"strict,omitempty"` // frameworks refuse number formats that the target lacks
	Lifetime  Lifetime          `json:"lifetime,omitzero"`

	Capability string `json:"capability,omitempty"` // CapabilityTarget or CapabilityReal; "" for the host's default
}

// Whose compute capability PyTorch reports in a session.
const (
	CapabilityTarget = "target" // the default where the CPU computes
	CapabilityReal   = "real"   // what CUDA reports: the default on hardware
)

// Session is one session with all choices made, as the state keeps it and Prepare gets it.
type Session struct {
	Address Address `json:"address"`
	ID      string  `json:"id"` // stable, names the session on its host over all changes
	Target  Target  `json:"target"`
	Request Request `json:"request"`
	Slice   Slice   `json:"slice"` // of its first device
	Fit     Fit     `json:"fit"`
	More    []Slice `json:"more_slices,omitempty"` // of its other devices: other whole GPUs of the host
	MPS     string  `json:"mps,omitempty"`         // folder of the MPS daemon that its programs use; "" without one

	Runtime string `json:"runtime"`           // "process", "docker"
	Compute string `json:"compute,omitempty"` // how PyTorch computes on a simulated host: "cpu", "none"; "" on hardware
	Program
	Spec ContainerSpec `json:"box,omitzero"` // zero where the runtime uses no attribute of it

	// Secret has the sensitive variables of the environment. It is never written with the session. Sealed has hashes of
	// them that only the state's key can make.
	Secret map[string]string `json:"-"`
	Sealed map[string]string `json:"sealed_env,omitempty"`

	// Stopped says that the user stopped the session with cosplay stop. It stays stopped until cosplay start.
	Stopped bool `json:"stopped,omitempty"`

	// DependsOn are the names of blocks whose sessions are brought up before this one, and removed after it.
	DependsOn []string `json:"depends_on,omitempty"`

	// PreventDestroy is kept in the state, so that it has an effect after its block is removed.
	PreventDestroy bool `json:"prevent_destroy,omitempty"`
	// Trigger is a digest of the values whose change replaces the session; "" for none.
	Trigger string `json:"trigger,omitempty"`
}

// Slices are the slices of all devices of the session, in the order in which its programs number them.
func (s Session) Slices() []Slice { return append([]Slice{s.Slice}, s.More...) }

// On are the GPUs that the session is on.
func (s Session) On() []GPUKey { return prose.Each(s.Slices(), Slice.On) }

// IsOn reports whether the session is on a GPU.
func (s Session) IsOn(gpu GPUKey) bool { return slices.Contains(s.On(), gpu) }

// SameSlices reports whether two sessions are on the same slices, in the same order.
func (s Session) SameSlices(o Session) bool { return slices.Equal(s.Slices(), o.Slices()) }

// Devices is how the driver identifies the slices of all devices of the session, of which given is the first.
func (s Session) Devices(given Handle) []Handle {
	more := func(slice Slice) Handle { return Handle{UUID: slice.GPU, Shared: given.Shared} }
	return append([]Handle{given}, prose.Each(s.More, more)...)
}

// ContainerSpec is what the container of a session is created from.
type ContainerSpec struct {
	Name       string   `json:"name,omitempty"` // of the container; "" leaves the choice to cosplay
	Image      string   `json:"image"`
	Pull       string   `json:"pull"`                // PullMissing, PullNever, PullAlways
	Entrypoint []string `json:"entrypoint,omitzero"` // before the command; ImageEntrypoint alone is the image's; empty and not nil: none, on purpose
	Volumes    []Volume `json:"volumes,omitempty"`
	SSH        SSH      `json:"ssh"`
	Limits     Limits   `json:"limits"`
	Ports      []Port   `json:"ports,omitempty"`   // published, besides that of ssh
	Network    string   `json:"network,omitempty"` // of the engine; "" is its default
	Sudo       bool     `json:"sudo"`
	Restart    string   `json:"restart"` // Docker's policy: "unless-stopped"
	User       User     `json:"user"`    // the session's user inside
}

// Rests reports whether a body is stopped, and the user wants it to be.
func (s Session) Rests(now Body) bool { return s.Stopped && now.State == Stopped }

// BodyName is the name of the session's body, in runtimes where bodies have names.
func (s Session) BodyName() string { return cmp.Or(s.Spec.Name, BodyName(s.ID)) }

// Emulates reports whether PyTorch has a device "cuda" in the session without a GPU: the CPU computes for it, or there are
// shapes only.
func (s Session) Emulates() bool { return s.Compute == "cpu" || s.Compute == "shapes" }

// ReportedCapability is whose compute capability PyTorch reports in the session.
func (s Session) ReportedCapability() string {
	if s.Capability == "" && s.Emulates() {
		return CapabilityTarget
	}
	return cmp.Or(s.Capability, CapabilityReal)
}

// HasProgram reports whether a session runs a program, besides those that users start in it.
func (s Session) HasProgram() bool { return len(s.Command) > 0 || len(s.Spec.Entrypoint) > 0 }

// WorkspaceInside is the path of the workspace in a container, of cosplay and of gpu-cosplay.
const WorkspaceInside = "/workspace"

// ImageEntrypoint is the entrypoint that stands for that of the image.
const ImageEntrypoint = "image"

// RunsImage reports whether a session runs the program of its image.
func (c ContainerSpec) RunsImage() bool {
	return len(c.Entrypoint) == 1 && c.Entrypoint[0] == ImageEntrypoint
}

// IsZero reports whether a session has no container.
func (c ContainerSpec) IsZero() bool { return c.Image == "" && c.User == User{} }

// DefaultImage is the image of a session that names none: cosplay's own, which is built where it is missing.
const DefaultImage = "cosplay:latest"

// When an image is pulled.
const (
	PullMissing = "missing"
	PullNever   = "never"
	PullAlways  = "always"
)

// Volume is a folder of the host, by absolute path, or a named volume.
type Volume struct {
	Source   string `json:"source"`
	Target   string `json:"target"` // absolute, in the container
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Named reports whether the volume is a named one.
func (v Volume) Named() bool { return !strings.HasPrefix(v.Source, "/") }

// Port is a port of a container that the engine publishes on the host.
type Port struct {
	Bind      string `json:"bind"` // address on the host
	Host      int    `json:"host"`
	Container int    `json:"container"`
	UDP       bool   `json:"udp,omitempty"` // instead of TCP
}

// Protocol is the port's protocol, in the engine's words.
func (p Port) Protocol() string {
	if p.UDP {
		return "udp"
	}
	return "tcp"
}

// String is the port as Docker writes it: 127.0.0.1:8080->80/tcp.
func (p Port) String() string {
	host := p.Bind
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d->%d/%s", host, p.Host, p.Container, p.Protocol())
}

// NoNetwork is the network of a container without one.
const NoNetwork = "none"

// SSH is how users log in to a session.
type SSH struct {
	Enabled        bool     `json:"enabled"`
	Port           int      `json:"port"`           // on the host; 0 takes a free one and keeps it
	Kept           int      `json:"kept,omitempty"` // the free one that was taken
	Bind           string   `json:"bind"`           // address on the host
	AuthorizedKeys []string `json:"authorized_keys,omitempty"`
}

// Exposed reports whether users can log in from other machines, so that the user of the session must not become root
// without a password.
func (s SSH) Exposed() bool {
	address, err := netip.ParseAddr(s.Bind)
	return s.Enabled && (err != nil || !address.IsLoopback())
}

// Limits bound what a container may use of the machine; 0 is no limit.
type Limits struct {
	CPUs      float64 `json:"cpus,omitempty"`
	MemoryMiB int     `json:"memory_mib,omitempty"`
	ShmMiB    int     `json:"shm_mib,omitempty"`
	PIDs      int     `json:"pids,omitempty"`
}

// User is the account of a session's user, who ran apply.
type User struct {
	Name  string `json:"name"`
	UID   int    `json:"uid"`
	GID   int    `json:"gid"`
	Group string `json:"group"`
}

// SliceID is the UUID of the session's MIG slice or of its whole GPU.
func (s PriorSession) SliceID() string {
	if s.Handle != nil {
		return s.Handle.UUID
	}
	return s.Slice.GPU
}

// Sharers counts, for each of these sessions that shares a slice, a GPU instance or a GPU, the sessions that share it,
// with itself; of several devices, it is that of the one with most.
func Sharers(sessions []Session) map[Address]int {
	on := map[GPUKey][]Slice{}
	for _, s := range sessions {
		for _, slice := range s.Slices() {
			if slice.Shared() {
				on[slice.On()] = append(on[slice.On()], slice)
			}
		}
	}
	most := map[Address]int{}
	for _, s := range sessions {
		for _, own := range s.Slices() {
			n := 0
			for _, o := range on[own.On()] {
				if own.SharesWith(o) {
					n++
				}
			}
			if n > most[s.Address] {
				most[s.Address] = n
			}
		}
	}
	return most
}

// Body is where a session runs: a session folder of the process runtime or, with Docker, a container.
type Body struct {
	ID      string `json:"id"`      // the runtime's own
	Session string `json:"session"` // the session's ID
	Host    string `json:"host"`
	Runtime string `json:"runtime"`            // "process", "docker"
	State   string `json:"state"`              // Running, Stopped, Paused, Restarting
	Hash    string `json:"hash"`               // of the session that it was created from
	SliceID string `json:"slice"`              // UUID of the MIG slice or of the whole GPU that it was given
	Image   string `json:"image,omitempty"`    // ID of the image that it runs
	SSHPort int    `json:"ssh_port,omitempty"` // on the host; 0 without ssh
	Damaged string `json:"damaged,omitempty"`  // which part of the disguise is not as it was written, in words; as read
	Foreign bool   `json:"foreign,omitempty"`  // imported: cosplay did not create it, and identifies it by its ID alone
	Serial  int    `json:"serial,omitempty"`   // of the state after the run that created it; 0 where an older cosplay did
	Stamp   string `json:"stamp,omitempty"`    // of a session folder as it was created: see disguise.Stamper; the state's alone

	// SecretsInEnv is true for a container of an older cosplay, which put sensitive values into the container's own
	// environment; as read.
	SecretsInEnv bool `json:"open,omitempty"`

	Bounds   *Bounds    `json:"bounds,omitempty"`   // with Docker; as read
	Outdated []Outdated `json:"outdated,omitempty"` // parts of the disguise that this cosplay would write otherwise; as read

	Unstarted bool `json:"unstarted,omitempty"` // it has not run since it was created, while it is Stopped; as read

	Restarts int          `json:"restarts,omitempty"` // how often it was restarted, while it is Restarting; as read
	Altered  []Alteration `json:"altered,omitempty"`  // what another program changed while it runs; as read
	Replaced []string     `json:"replaced,omitempty"` // what is mounted in it, by path on the host, where there is another file or folder now; as read

	Earlier []int `json:"earlier,omitempty"` // first processes of containers that were started with an earlier form of a CDI device; as read

	Use *Use `json:"-"` // of its programs, as read; nil if the disguise of CUDA does not count it, or was not inspected
}

// Alteration is something of a container that can be restored while it runs.
type Alteration struct {
	Part AlteredPart `json:"part"`
	From string      `json:"from"`         // for people
	To   string      `json:"to,omitempty"` // "" is none
}

// AlteredPart is an attribute of a session, by its name in the language.
type AlteredPart string

// What can be altered.
const (
	AlteredName    AlteredPart = "name"
	AlteredNetwork AlteredPart = "network"
	AlteredSSHPort AlteredPart = "ssh.port"
	AlteredPorts   AlteredPart = "ports"
)

// Bounds are what docker update can change of a container; 0 is no limit.
type Bounds struct {
	MilliCPUs int    `json:"milli_cpus,omitempty"`
	MemoryMiB int    `json:"memory_mib,omitempty"`
	PIDs      int    `json:"pids,omitempty"`
	Restart   string `json:"restart"` // Docker's policy
}

// Bounds are the bounds with which the container is created.
func (c ContainerSpec) Bounds() Bounds {
	return Bounds{MilliCPUs: int(math.Round(c.Limits.CPUs * 1000)), MemoryMiB: c.Limits.MemoryMiB, PIDs: c.Limits.PIDs, Restart: c.Restart}
}

// Outdated is an undamaged part of a session's disguise that this cosplay would write otherwise on the host as it is
// now.
type Outdated struct {
	Part string `json:"part"` // Facades, Driver
	From string `json:"from"` // for people
	To   string `json:"to"`
}

// The parts of a disguise that are outdated by an update.
const (
	Facades = "facades" // of cosplay
	Driver  = "driver"  // of the host's driver, behind them
)

// CommandWords shows a command as the configuration has it; "(none)" without one.
func CommandWords(argv []string) string {
	if len(argv) == 0 {
		return "(none)"
	}
	return "[" + strings.Join(prose.Quoted(argv), ", ") + "]"
}

// States of a body.
const (
	Running    = "running"
	Stopped    = "stopped"
	Paused     = "paused"
	Restarting = "restarting" // its program ends again and again, and the engine restarts it
)

// Remains is what a session has left on its host. cosplay rebuilds a lost state from it.
type Remains struct {
	Session Session // with ID alone where the rest cannot be read
	Body    Body    // with the UUID of the slice that it was given

	// Proven says that only the owner of the state's key can have created it. The user must confirm what is not proven.
	Proven bool
}
