package resource

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/pattern"
)

// Model is what one kind of GPU offers: read from NVML where there is hardware, from the catalog for work without it.
type Model struct {
	Name              string  `json:"name"`               // as NVML prints it: "NVIDIA H200"
	ComputeCapability string  `json:"compute_capability"` // "9.0"
	SMs               int     `json:"sms"`
	MemoryMiB         int     `json:"memory_mib"`
	BandwidthGBs      float64 `json:"bandwidth_gbs"` // of the whole GPU, GB/s
	L2MiB             float64 `json:"l2_mib"`
	ClocksMHz         []int   `json:"clocks_mhz"` // lockable SM clocks, ascending

	PowerMinMW     int `json:"power_min_mw"`
	PowerDefaultMW int `json:"power_default_mw"`
	PowerMaxMW     int `json:"power_max_mw"`

	FP32PerSM   float64 `json:"fp32_per_sm"`   // FLOP per clock and SM
	TensorPerSM float64 `json:"tensor_per_sm"` // dense FP16, FP32 accumulate, FLOP per clock and SM; 0 without tensor cores

	MemorySlices  int       `json:"memory_slices,omitempty"`  // slots that placements count in; 0 without MIG
	ComputeSlices int       `json:"compute_slices,omitempty"` // 7 on GPUs with 8 memory slices
	Profiles      []Profile `json:"profiles,omitempty"`       // GPU instance profiles; none without MIG
}

// Profile is a GPU instance profile of a MIG-capable GPU.
type Profile struct {
	Name          string `json:"name"` // "1g.18gb"
	ID            int    `json:"id"`   // as nvidia-smi counts them: 19; enumerate, never hard-code
	SMs           int    `json:"sms"`
	MemoryMiB     int    `json:"memory_mib"`
	MemorySlices  int    `json:"memory_slices"`
	ComputeSlices int    `json:"compute_slices"`
	MaxInstances  int    `json:"max_instances"`
	Starts        []int  `json:"starts"` // legal placements: their first slot
}

// MIG reports whether the GPU can be cut into GPU instances.
func (m Model) MIG() bool { return m.MemorySlices > 0 }

// DividesSMs reports whether MPS can give a process a part of the SMs: since Volta.
func (m Model) DividesSMs() bool {
	major, _, _ := strings.Cut(m.ComputeCapability, ".")
	number, err := strconv.Atoi(major)
	return err == nil && number >= 7
}

// CoresPerSM is the number of FP32 lanes that NVML counts as cores (CUDA programming guide, arithmetic instructions by
// compute capability).
func CoresPerSM(major, minor int) int {
	switch {
	case major == 6 && minor == 0, major == 7, major == 8 && minor == 0:
		return 64
	}
	return 128
}

// MaxClockMHz is the highest lockable SM clock: what an unlocked GPU runs at.
func (m Model) MaxClockMHz() int {
	if len(m.ClocksMHz) == 0 {
		return 0
	}
	return m.ClocksMHz[len(m.ClocksMHz)-1]
}

// GPU is one physical GPU as its host shows it.
type GPU struct {
	Host  string `json:"host"`
	Index int    `json:"index"` // not stable: for output only
	UUID  string `json:"uuid"`
	PCI   string `json:"pci"` // "00000000:84:00.0"
	Node  string `json:"-"`   // of a Kubernetes cluster, "" elsewhere
	Model Model  `json:"model,omitzero"`

	MIGCapable  bool `json:"mig_capable"` // MIG mode can be asked for
	MIG         bool `json:"mig"`         // MIG mode, current
	MIGPending  bool `json:"mig_pending"` // MIG mode after the next reset
	Persistence bool `json:"persistence"`
	PowerMW     int  `json:"power_mw"` // power management limit
	ComputeMode int  `json:"compute_mode,omitempty"`
	TimeSlice   *int `json:"timeslice,omitempty"` // an index of TimeSlices; nil where it was not read

	// A clock lock has no getter in NVML. What can be read is the SM clock now, and whether the GPU has a reason to run
	// below its lock.
	SMClockMHz     int  `json:"sm_clock_mhz"`
	LowClockReason bool `json:"held"` // idle, or throttled by power or heat: a low clock proves nothing

	TemperatureC  int `json:"temperature_c"`
	DrawMW        int `json:"draw_mw"`
	MemoryUsedMiB int `json:"memory_used_mib"`

	UtilizationPercent *int `json:"utilization_percent,omitempty"` // nil where the driver does not report it, as in MIG mode

	Slices    []LiveSlice `json:"slices,omitempty"`
	Processes []Process   `json:"processes,omitempty"`

	Degraded []Degradation `json:"degraded,omitempty"` // what the driver does not offer; its fields above are zero
}

// GPUInstance is a GPU instance of MIG.
type GPUInstance struct {
	GPU string `json:"gpu"` // UUID
	ID  int    `json:"id"`
}

// ActivityUnknown is how busy a GPU instance is of which the driver does not say it.
const ActivityUnknown = -1

// ClockSample is one reading of the SM clock.
type ClockSample struct {
	MHz            int  `json:"mhz"`
	LowClockReason bool `json:"low_clock_reason,omitempty"` // as in GPU
}

// Process is a program that uses the GPU.
type Process struct {
	PID             int    `json:"pid"`
	Name            string `json:"name,omitempty"`
	MemoryMiB       int    `json:"memory_mib"`
	GPUInstance     *int   `json:"gpu_instance,omitempty"`     // the MIG slice that it runs in; nil on the whole GPU
	ComputeInstance *int   `json:"compute_instance,omitempty"` // as GPUInstance; nil where the driver does not report it
	Session         string `json:"session,omitempty"`          // ID of the project's session that it is known to run in; on a whole GPU alone

	// Marks say where a process runs, as far as the agent may read that: the containers of its control group, by ID, and
	// variables of its environment and of its ancestors', NAME=value. A reading of the project has none.
	Marks []string `json:"marks,omitempty"`
}

// Marked reports whether a process has a mark.
func (p Process) Marked(mark string) bool { return slices.Contains(p.Marks, mark) }

// LoaderVariable has the folders in which a program's loader looks first, separated by colons.
const LoaderVariable = "LD_LIBRARY_PATH"

// Slice is the part of a physical GPU that a session gets, identified by what outlives a reboot: GPU, profile and
// placement.
type Slice struct {
	Host    string `json:"host"`
	GPU     string `json:"gpu"`               // UUID
	Profile string `json:"profile,omitempty"` // "" is the whole GPU
	Start   int    `json:"start"`             // first slot
	Size    int    `json:"size"`              // slots taken; 0 for the whole GPU

	Sharing        Sharing `json:"sharing,omitempty"`        // how other sessions may have it, too; "" if none may
	Percent        int     `json:"percent,omitempty"`        // of the SMs, by MPS: its active thread percentage; 0 where SMs are not divided
	Oversubscribed bool    `json:"oversubscribed,omitempty"` // the sessions that share it may use more memory together than it has

	ComputeStart int `json:"compute_start,omitempty"` // of a compute instance smaller than its GPU instance: its first compute slice there
}

// Whole reports whether the slice is a GPU without MIG.
func (s Slice) Whole() bool { return s.Profile == "" }

// Shared reports whether other sessions may have the slice or the whole GPU, too.
func (s Slice) Shared() bool { return s.Sharing.Shares() }

// Place returns the slice as the driver knows it, without how sessions share it.
func (s Slice) Place() Slice {
	s.Sharing, s.Percent, s.Oversubscribed = "", 0, false
	return s
}

// Beside reports whether two sessions with these slices share one slice, or one whole GPU.
func (s Slice) Beside(o Slice) bool {
	return s.Shared() && s.Sharing == o.Sharing && s.Oversubscribed == o.Oversubscribed && s.Place() == o.Place()
}

// SharesWith reports whether two sessions with these slices share memory and bandwidth: of a slice, of a GPU instance
// in which both have a compute instance, or of a whole GPU.
func (s Slice) SharesWith(o Slice) bool {
	return s.Beside(o) || s.Divides() && o.Divides() && s.Shared() && o.Shared() && s.Instance() == o.Instance()
}

// Overlaps reports whether two sessions cannot have these slices at the same time.
func (s Slice) Overlaps(o Slice) bool {
	if s.Host != o.Host || s.GPU != o.GPU || s.Beside(o) {
		return false
	}
	if s.Whole() || o.Whole() {
		return true
	}
	return s.Crosses(o)
}

// Handle is how the driver identifies a MIG slice. It uses ids again, and gives each created slice a new UUID, so
// neither identifies a slice alone.
type Handle struct {
	GPUInstance     int    `json:"gpu_instance"` // or Unseen
	ComputeInstance int    `json:"compute_instance"`
	UUID            string `json:"uuid,omitempty"` // "" while there is no compute instance
	Boot            string `json:"boot,omitempty"` // ID of the boot of the host in which it exists; "" in records of before

	Shared bool `json:"shared,omitempty"` // of a whole GPU, which has a UUID alone: programs outside the session use it
}

// Unseen is the GPU instance of a slice whose GPU was lost while cosplay created the slice: whether it exists is not
// known yet.
const Unseen = -1

// Need is what a slice must offer. Drivers hide their profiles while MIG mode is off, so a plan may use those of the
// catalog. Before the slice is created, the agent compares the driver's profile with the need.
type Need struct {
	SMs       int `json:"sms"`        // exactly
	MemoryMiB int `json:"memory_mib"` // at least

	// Beside is the UUID of a compute instance of the project, in whose GPU instance the slice is created, too. Without
	// it, its GPU instance is created.
	Beside string `json:"beside,omitempty"`
}

// LiveSlice is a MIG slice that exists.
type LiveSlice struct {
	Slice
	Handle

	// Imported is set in the ledger: the slice was there before cosplay, which leaves it where no session has it.
	Imported bool `json:"imported,omitempty"`

	// Serial is that of the state of its project after the run that created it.
	// Only a ledger has it; 0 where an older cosplay created the slice.
	Serial int `json:"serial,omitempty"`
}

// SliceMatch is the result of comparing a slice on record with a slice that exists.
type SliceMatch int

// The matches. A slice has no label, and drivers before 470 name it by its GPU and
// its instance ids: a slice that is destroyed and recreated then has the same name.
const (
	OtherSlice    SliceMatch = iota // it is another slice
	SameSlice                       // its name was given to it alone
	UnprovenSlice                   // all that is known agrees, but a recreated slice would look the same
)

// IsAt reports whether a slice of a GPU that exists is at a place there, or is the GPU instance that was left without a
// compute instance.
func (s LiveSlice) IsAt(place Slice) bool {
	at := s.Slice
	if s.UUID == "" {
		at, place = at.Instance(), place.Instance()
	}
	return at.Profile == place.Profile && at.Start == place.Start && at.ComputeStart == place.ComputeStart
}

// Match compares a slice on record with one that exists. It is the only place that
// decides whether two slices are one.
func (s LiveSlice) Match(live LiveSlice) SliceMatch {
	if s.GPU != "" && live.GPU != "" && s.GPU != live.GPU || !live.IsAt(s.Slice) {
		return OtherSlice
	}
	if s.Boot != "" && live.Boot != "" && s.Boot != live.Boot {
		return OtherSlice // no slice outlives a boot
	}
	if s.UUID == "" || live.UUID == "" { // without a compute instance it has no name
		if live.UUID == "" && s.GPUInstance == live.GPUInstance {
			return SameSlice
		}
		return OtherSlice
	}
	return s.matchNames(live)
}

func (s LiveSlice) matchNames(live LiveSlice) SliceMatch {
	byIDs, nowByIDs := s.NamedByIDs(), live.NamedByIDs()
	switch {
	case s.UUID == live.UUID && !byIDs:
		return SameSlice
	case s.UUID == live.UUID, byIDs != nowByIDs && s.idName(live.GPU) == live.idName(live.GPU): // by the same driver, by another one
		return UnprovenSlice
	}
	return OtherSlice
}

// idName is the name of a slice by its GPU and its instance ids, as it has it or would have it.
func (h Handle) idName(gpu string) string {
	if h.NamedByIDs() {
		return h.UUID
	}
	return IDName(gpu, h.GPUInstance, h.ComputeInstance)
}

const migPrefix = "MIG-"

// IDName is what drivers before 470 call a MIG slice. Later ones accept it, too.
func IDName(gpu string, gpuInstance, computeInstance int) string {
	return fmt.Sprintf("%s%s/%d/%d", migPrefix, gpu, gpuInstance, computeInstance)
}

// namedByIDs is the form of those names.
var namedByIDs = pattern.Of(`^MIG-GPU-[0-9A-Za-z-]+/\d+/\d+$`)

// NamedByIDs reports whether the driver names the slice by its instance ids.
func (h Handle) NamedByIDs() bool {
	return strings.Contains(h.UUID, "/") && namedByIDs().MatchString(h.UUID)
}

// IsCalled reports whether a name is a slice's, in either form.
func (s LiveSlice) IsCalled(name string) bool {
	return name != "" && s.UUID != "" && (name == s.UUID || name == IDName(s.GPU, s.GPUInstance, s.ComputeInstance))
}
