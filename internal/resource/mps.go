package resource

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MPS is the control daemon of NVIDIA's Multi-Process Service that a project runs for its sessions on a GPU, with the
// defaults for programs that set no limit.
type MPS struct {
	Folder    string `json:"folder"`            // with its pipes and its logs, absolute
	Percent   int    `json:"percent,omitempty"` // active thread percentage: the largest share of a session; 0 before Volta
	MemoryMiB int    `json:"memory_mib"`        // that one program can allocate
}

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

// MPSDaemon is a folder of the project, with its control daemon.
type MPSDaemon struct {
	MPS            // its defaults as it reports them, which rounds memory down to MiB or GiB
	Running bool   `json:"running"`
	Silent  string `json:"silent,omitempty"` // why it does not answer although it runs
}

// ForeignDaemon is a control daemon that another user or another program has started.
type ForeignDaemon struct {
	PID  int    `json:"pid"`
	User string `json:"user"`
	Pipe string `json:"pipe,omitempty"`    // its pipe folder; "" where it cannot be read
	GPUs string `json:"visible,omitempty"` // its CUDA_VISIBLE_DEVICES; "" is all, or not known
}

// Folder is where the project's daemon of a GPU has its pipes and its logs.
func (s MPSService) Folder(gpu string) string {
	sum := sha256.Sum256([]byte(gpu))
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

// Has reports whether a daemon runs with the wanted defaults.
func (d MPSDaemon) Has(want MPS) bool {
	memory := d.MemoryMiB == want.MemoryMiB || want.MemoryMiB >= 1024 && d.MemoryMiB == want.MemoryMiB/1024*1024
	return d.Running && d.Silent == "" && memory && (want.Percent == 0 || d.Percent == want.Percent)
}
