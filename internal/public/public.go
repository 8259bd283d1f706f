// Package public has the types of what commands write with --json. Names, types and comments of their fields are the
// public interface: docs/reference/json.md and the JSON Schema beside it are generated from them. They use no other
// type of cosplay, so that state, plan and protocol can change while they stay. Pure.
package public

import "encoding/json"

// Format is the first field of each output.
type Format struct {
	FormatVersion int `json:"format_version"` // 1; it is raised when a field is removed or changes its meaning, not when one is added
}

// V1 is the format of this cosplay.
var V1 = Format{1}

// Diagnostics is what validate writes, and any other command instead of its output where the configuration has
// errors.
type Diagnostics struct {
	Format
	Valid       bool         `json:"valid"`         // there is no error
	Errors      int          `json:"error_count"`   // number of errors
	Warnings    int          `json:"warning_count"` // number of warnings
	Diagnostics []Diagnostic `json:"diagnostics"`   // in the order in which they are found
}

// Diagnostic is an error or a warning, with the names that Terraform uses.
type Diagnostic struct {
	Severity string   `json:"severity"`          // error or warning
	Summary  string   `json:"summary"`           // one line
	Detail   string   `json:"detail,omitempty"`  // sentences that say more, and how to fix it
	Range    *Range   `json:"range,omitempty"`   // where it is; missing where it has no place in a file
	Snippet  *Snippet `json:"snippet,omitempty"` // the line of the file; missing where the file cannot be read
}

// Range is a part of a configuration file.
type Range struct {
	File  string `json:"filename"` // as it was given on the command line
	Start Pos    `json:"start"`    // its first byte
	End   Pos    `json:"end"`      // the byte after its last one
}

// Pos is a place in a file.
type Pos struct {
	Line   int `json:"line"`   // from 1
	Column int `json:"column"` // from 1, in characters
	Byte   int `json:"byte"`   // from 0, in the file
}

// Snippet is the line in which a diagnostic begins.
type Snippet struct {
	Context string `json:"context,omitempty"`      // the block around it: session "worker"
	Code    string `json:"code"`                   // the whole line
	Line    int    `json:"start_line"`             // its number, from 1
	Start   int    `json:"highlight_start_offset"` // where the diagnostic begins in code, in bytes from 0
	End     int    `json:"highlight_end_offset"`   // where it ends in code, in bytes
}

// Output is an output of the configuration. One that is sensitive, or that only an apply makes known, has no type and
// no value.
type Output struct {
	Name      string          `json:"name"`            // of its block
	Sensitive bool            `json:"sensitive"`       // its value is not shown
	Type      json.RawMessage `json:"type,omitempty"`  // as Terraform writes types: "string", ["list", "number"]
	Value     json.RawMessage `json:"value,omitempty"` // of that type
}

// Outputs is what output writes. With a name, it writes the value alone.
type Outputs struct {
	Format
	Outputs []Output `json:"outputs"` // by name
}

// Verify is the self-test of sessions.
type Verify struct {
	Holds    bool              `json:"holds"`    // no check failed
	Sessions []VerifiedSession `json:"sessions"` // that were tested, by address
}

// Verified is what verify writes.
type Verified struct {
	Format
	Verify
}

// VerifiedSession is a session with its checks.
type VerifiedSession struct {
	Address       string     `json:"address"`                  // session.worker[0]
	Name          string     `json:"name"`                     // short address, as users type it: worker-0
	Passed        int        `json:"passed"`                   // number of checks that passed
	Failed        int        `json:"failed"`                   // number of checks that failed
	Skipped       int        `json:"skipped"`                  // number of checks that could not be run
	NotApplicable int        `json:"not_applicable,omitempty"` // number of checks of what a simulated host cannot run
	Checks        []Check    `json:"checks"`                   // all checks
	Outdated      []Outdated `json:"outdated,omitempty"`       // parts of the disguise that this cosplay would make differently
}

// Check is the result of one check of a session.
type Check struct {
	Check    string `json:"check"`           // its name, which stays the same over versions: nvml.memory
	Class    string `json:"class"`           // entry, environment, nvidia-smi, nvml, cuda, python, slice, settings or files
	Way      string `json:"way"`             // where it ran: exec or ssh in the session, host outside of it
	Outcome  string `json:"outcome"`         // passed, failed, skipped or not_applicable (a simulated host cannot run it)
	Expected string `json:"expected"`        // the value that passes
	Found    string `json:"found,omitempty"` // the value that the check found
	Why      string `json:"why,omitempty"`   // reason of a check that was skipped or is not applicable
	By       string `json:"by,omitempty"`    // CPU where it computed in place of a GPU, shapes where nothing computed
	Hint     string `json:"hint,omitempty"`  // how to fix a failed check
}

// Doctor is what doctor writes.
type Doctor struct {
	Format
	Missing  int       `json:"missing"`  // number of findings without which no session can run
	Findings []Finding `json:"findings"` // by host
}

// Finding is one thing that a host or its sessions need.
type Finding struct {
	Host  string `json:"host,omitempty"` // name of the host; missing for what concerns all hosts
	Thing string `json:"thing"`          // NVML, Docker, ssh keys
	Found string `json:"found"`          // what was found, in words
	Grade string `json:"grade"`          // good, notice (it works with a restriction) or missing
	Fix   string `json:"fix,omitempty"`  // command or sentence that fixes it
	Line  string `json:"line,omitempty"` // line that the fix adds to a file, to be copied as it is
}

// Graph is what graph writes.
type Graph struct {
	Format
	Nodes []Node `json:"nodes"` // hosts, GPUs and sessions; or steps with --steps
	Edges []Edge `json:"edges"` // from a node to one that it needs
}

// Node is one thing in a graph.
type Node struct {
	ID    string `json:"id"`    // unique in the graph
	Kind  string `json:"kind"`  // host, gpu, session or step
	Label string `json:"label"` // for people; it can have several lines
}

// Edge means that one node needs another.
type Edge struct {
	From string `json:"from"`          // ID of the node that needs the other
	To   string `json:"to"`            // ID of the node that is needed
	Why  string `json:"why,omitempty"` // reason, for people
}

// SSHConfig is what ssh-config writes.
type SSHConfig struct {
	Format
	Hosts []SSHHost `json:"hosts"` // one for each session with ssh
}

// SSHHost is a Host block of ssh's configuration.
type SSHHost struct {
	Name    string      `json:"name"`    // after the word Host
	Session string      `json:"session"` // address of the session
	Options []SSHOption `json:"options"` // lines of the block, in their order
}

// SSHOption is a line of ssh's configuration.
type SSHOption struct {
	Name  string `json:"name"`  // HostName, Port
	Value string `json:"value"` // what follows the name
}

// Version is what version writes.
type Version struct {
	Format
	Version  string   `json:"version"`            // of cosplay: 0.1.0
	Go       string   `json:"go"`                 // version of Go that built it
	Revision string   `json:"revision,omitempty"` // commit of the source; missing if unknown
	Lacks    []string `json:"lacks"`              // libraries that the build does not have embedded
}

// Built is what build writes.
type Built struct {
	Format
	Image string `json:"image"` // name with tag
	ID    string `json:"id"`    // of the engine: sha256:...
}

// Formatted is what fmt writes.
type Formatted struct {
	Format
	Changed []string `json:"changed"` // paths of files whose format differs
	Written bool     `json:"written"` // the files were changed; false with --check
}

// Simulated is what sim show writes: a simulated host as its hardware is, with what NVML does not report.
type Simulated struct {
	Format
	Simulates string         `json:"simulates"`        // 8 x h200
	Driver    string         `json:"driver"`           // version of the simulated driver
	CUDA      int            `json:"cuda"`             // version of CUDA as the driver reports it: 12040 is 12.4
	BootID    string         `json:"boot_id"`          // changes with each simulated reboot
	GPUs      []SimulatedGPU `json:"gpus"`             // by index
	Faults    []Fault        `json:"faults,omitempty"` // planned failures of calls
}

// SimulatedGPU is a GPU of a simulated host.
type SimulatedGPU struct {
	Index        int                `json:"index"`               // from 0
	UUID         string             `json:"uuid"`                // GPU-...
	Name         string             `json:"name"`                // as NVML reports it
	MIG          bool               `json:"mig"`                 // MIG mode is on
	MIGPending   bool               `json:"mig_pending"`         // MIG mode is on after the next reset
	Persistence  bool               `json:"persistence"`         // persistence mode is on
	PowerMW      int                `json:"power_mw"`            // power limit, mW
	ClockLockMHz int                `json:"clock_lock_mhz"`      // lock of the SM clock, MHz; 0 is unlocked
	ComputeMode  string             `json:"compute_mode"`        // default, prohibited or exclusive process
	TemperatureC int                `json:"temperature_c"`       // °C
	Lost         bool               `json:"lost,omitempty"`      // it answers no call
	Slices       []SimulatedSlice   `json:"slices,omitempty"`    // its GPU instances
	Processes    []SimulatedProcess `json:"processes,omitempty"` // processes that use it
}

// SimulatedSlice is a GPU instance.
type SimulatedSlice struct {
	GPUInstance int                `json:"gpu_instance"`      // ID on its GPU
	Profile     string             `json:"profile"`           // 1g.18gb
	Start       int                `json:"start"`             // first memory slice
	Size        int                `json:"size"`              // number of memory slices
	Compute     []SimulatedCompute `json:"compute,omitempty"` // its compute instances
}

// SimulatedCompute is a compute instance, which is a MIG device.
type SimulatedCompute struct {
	ComputeInstance int    `json:"compute_instance"` // ID in its GPU instance
	Start           int    `json:"start"`            // first compute slice
	Size            int    `json:"size"`             // number of compute slices
	UUID            string `json:"uuid"`             // MIG-...
}

// SimulatedProcess is a process on a simulated GPU.
type SimulatedProcess struct {
	PID         int  `json:"pid"`                    // process ID
	MemoryMiB   int  `json:"memory_mib"`             // GPU memory that it uses, MiB
	GPUInstance *int `json:"gpu_instance,omitempty"` // in which it runs; missing on a GPU without MIG
}

// Fault is a planned failure of a call of the simulated driver.
type Fault struct {
	Function string `json:"function"`       // name of the NVML function
	GPU      *int   `json:"gpu,omitempty"`  // index of the GPU; missing for any
	Nth      int    `json:"nth"`            // number of the call that fails, from 1; 0 for each call
	Action   string `json:"action"`         // answer, hang, ignore or absent
	Code     int    `json:"code,omitempty"` // NVML's code, with answer
}
