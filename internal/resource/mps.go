package resource

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/prose"
)

// MPS is the control daemon of NVIDIA's Multi-Process Service that a project runs for its sessions on a GPU, with the
// defaults for programs that set no limit.
type MPS struct {
	Folder    string `json:"folder"`            // with its pipes and its logs, absolute
	Percent   int    `json:"percent,omitempty"` // active thread percentage: the largest share of a session; 0 before Volta
	MemoryMiB int    `json:"memory_mib"`        // that one program can allocate
	Profile   string `json:"profile,omitempty"` // of the MIG slice that it serves; "" for the whole GPU
	Start     int    `json:"start,omitempty"`   // first slot of that slice
	GPUs      string `json:"gpus,omitempty"`    // UUIDs of all GPUs that it serves, with commas; "" for one GPU or slice
}

// For is the daemon with limits that are large enough for a session, too.
func (m MPS) For(s Session) MPS {
	m.Percent, m.MemoryMiB = max(m.Percent, s.Slice.Percent), max(m.MemoryMiB, s.Target.MemoryMiB+ContextMiB)
	if len(s.More) > 0 {
		m.GPUs = strings.Join(s.sortedGPUs(), ",")
	}
	return m
}

// Devices is how many GPUs the daemon serves.
func (m MPS) Devices() int { return strings.Count(m.GPUs, ",") + 1 }

// MemoryLimits are the limits of a program on each of its devices, as MPS takes them in a variable: "0=6656M,1=6656M".
func MemoryLimits(devices, mib int) string {
	var all []string
	for i := range devices {
		all = append(all, fmt.Sprintf("%d=%dM", i, mib))
	}
	return strings.Join(all, ",")
}

func (s Session) sortedGPUs() []string {
	all := prose.Each(s.Slices(), func(slice Slice) string { return slice.GPU })
	slices.Sort(all)
	return all
}

// HasDaemonOf reports whether the MPS daemon of a session is that of a GPU: one for several GPUs is that of the first
// by UUID.
func (s Session) HasDaemonOf(gpu GPUKey) bool {
	return s.Slice.Host == gpu.Host && s.sortedGPUs()[0] == gpu.UUID
}

// Serves reports whether the daemon is for the sessions that have a slice, or the whole GPU.
func (m MPS) Serves(s Slice) bool { return m.Profile == s.Profile && m.Start == s.Start }

// Daemons are the MPS daemons of a GPU.
type Daemons struct {
	MPS      *MPS  `json:"mps,omitempty"`       // of the whole GPU; nil for none
	SliceMPS []MPS `json:"slice_mps,omitempty"` // of its MIG slices, by slot
}

// All are the daemons of the whole GPU and of its slices.
func (d Daemons) All() []MPS {
	if d.MPS != nil {
		return append([]MPS{*d.MPS}, d.SliceMPS...)
	}
	return d.SliceMPS
}

// Find finds the daemon with a folder.
func (d Daemons) Find(folder string) (MPS, bool) {
	return find(d.All(), func(m MPS) bool { return m.Folder == folder })
}

// Of finds the daemon for the sessions that have a slice, or the whole GPU.
func (d Daemons) Of(s Slice) (MPS, bool) {
	return find(d.All(), func(m MPS) bool { return m.Serves(s) })
}

// With adds a daemon, in the place of one with its folder.
func (d Daemons) With(m MPS) Daemons {
	d = d.Without(m.Folder)
	if m.Profile == "" {
		d.MPS = &m
		return d
	}
	d.SliceMPS = append(d.SliceMPS, m)
	slices.SortFunc(d.SliceMPS, func(a, b MPS) int { return a.Start - b.Start })
	return d
}

// Without leaves out the daemon with a folder.
func (d Daemons) Without(folder string) Daemons {
	if d.MPS != nil && d.MPS.Folder == folder {
		d.MPS = nil
	}
	d.SliceMPS = slices.DeleteFunc(slices.Clone(d.SliceMPS), func(m MPS) bool { return m.Folder == folder })
	return d
}

// MPSControl is the name of the control program.
const MPSControl = "nvidia-cuda-mps-control"

// InstallMPS is the advice where the control program is missing.
const InstallMPS = "install the package of NVIDIA's driver that has it: nvidia-cuda-mps (Debian), nvidia-compute-utils (Ubuntu), nvidia-driver-cuda (RHEL)"

// ContextMiB is added to the memory of a session's target for the limit of one program: CUDA's own allocations count in
// that limit, and do not in the session.
const ContextMiB = 512

// Variables of MPS, in the environment of programs and of the daemon.
const (
	PipeVariable    = "CUDA_MPS_PIPE_DIRECTORY"
	LogVariable     = "CUDA_MPS_LOG_DIRECTORY"
	PercentVariable = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
	MemoryVariable  = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
)

// Pipes is the folder in which programs find the daemon.
func (m MPS) Pipes() string { return filepath.Join(m.Folder, "pipe") }

// Logs is the folder of the daemon's logs.
func (m MPS) Logs() string { return filepath.Join(m.Folder, "log") }

// MPSService is MPS on a host, as read. A host of which no session uses MPS has the zero value.
type MPSService struct {
	Program string          `json:"program,omitempty"` // path of nvidia-cuda-mps-control; "" where it is missing
	Dir     string          `json:"dir,omitempty"`     // in which the project's daemons have their folders
	Own     []MPSDaemon     `json:"own,omitempty"`     // by folder
	Foreign []ForeignDaemon `json:"foreign,omitempty"` // control daemons that the project does not run
}

// MPSSearch says which control daemons a reading of a host looks for: none with the zero value.
type MPSSearch struct {
	Key   string   `json:"key,omitzero"`   // equal for all projects of a user that share the daemons of a host
	Known []string `json:"known,omitzero"` // folders that the state has, wherever they are
	Uses  bool     `json:"uses,omitzero"`  // a session may need one; otherwise those that exist are enough
}

// MPSDaemon is a folder of the project, with its control daemon.
type MPSDaemon struct {
	MPS            // its defaults as it reports them, which rounds memory down to MiB or GiB
	Running bool   `json:"running"`
	Silent  string `json:"silent,omitempty"`  // why it does not answer although it runs
	Unasked bool   `json:"unasked,omitempty"` // it runs, and there is no control program to ask it
}

// ForeignDaemon is a control daemon that another user or another program has started.
type ForeignDaemon struct {
	PID  int    `json:"pid"`
	User string `json:"user"`
	Pipe string `json:"pipe,omitempty"`    // its pipe folder; "" where it cannot be read
	GPUs string `json:"visible,omitempty"` // its CUDA_VISIBLE_DEVICES; "" is all, or not known
}

// Folder is where the project's daemon of a MIG slice or of a whole GPU has its pipes and its logs.
func (s MPSService) Folder(of Slice) string {
	name := of.GPU
	if !of.Whole() {
		name += fmt.Sprintf(" %s %d", of.Profile, of.Start)
	}
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:4]))
}

// Daemon finds a folder of the project.
func (s MPSService) Daemon(folder string) (MPSDaemon, bool) {
	return find(s.Own, func(d MPSDaemon) bool { return d.Folder == folder })
}

// Serves reports whether a daemon is known to serve a GPU: by its UUID, which it may abbreviate, or on the hardware of
// this machine by its index, or because it names none.
func (d ForeignDaemon) Serves(g GPU, hardware bool) bool {
	if d.GPUs == "" {
		return hardware && d.Pipe != ""
	}
	return slices.ContainsFunc(strings.Split(d.GPUs, ","), func(name string) bool {
		return hardware && name == strconv.Itoa(g.Index) || len(name) > len("GPU-") && strings.HasPrefix(g.UUID, name)
	})
}

// Ending is how its owner ends it, to follow "ask its owner to end it".
func (d ForeignDaemon) Ending() string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-"
	switch {
	case d.Pipe == "":
		return "(echo quit | nvidia-cuda-mps-control)"
	case strings.Trim(d.Pipe, plain) != "": // another user chose the name: it is not printed as part of a command
		return fmt.Sprintf("(echo quit | nvidia-cuda-mps-control, with %s set to its pipe folder %q)", PipeVariable, d.Pipe)
	}
	return fmt.Sprintf("(echo quit | %s=%s nvidia-cuda-mps-control)", PipeVariable, d.Pipe)
}

// Advice is what to do about it.
func (d ForeignDaemon) Advice() prose.Advice {
	return prose.Advice{What: "cosplay did not start it and leaves it alone; a GPU can have one MPS daemon", Fix: "ask its owner to end it " + d.Ending()}
}

// Has reports whether a daemon runs with the wanted defaults, as far as it can be asked.
func (d MPSDaemon) Has(want MPS) bool {
	return d.Running && d.Silent == "" && (d.Unasked || d.HasMemory(want.MemoryMiB) && (want.Percent == 0 || d.Percent == want.Percent))
}

// HasMemory reports whether the memory that a daemon reports is a number of MiB: from a GiB on it reports whole GiB.
func (d MPSDaemon) HasMemory(mib int) bool {
	return d.MemoryMiB == mib || mib >= 1024 && d.MemoryMiB == mib/1024*1024
}
