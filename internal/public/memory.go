package public

// MemoryUse says what the memory of a device was for, when the program had reserved most.
type MemoryUse struct {
	Device    int           `json:"device"`                // 0 is cuda:0
	Reserved  int           `json:"reserved_bytes"`        // by PyTorch's allocator, with its cache
	Allocated int           `json:"allocated_bytes"`       // of tensors and workspaces
	Unused    int           `json:"unused_cache_bytes"`    // reserved and not allocated: free blocks that fit no request
	Kinds     []MemoryKind  `json:"kinds"`                 // what the allocated bytes are for, largest first
	Lines     []MemoryLine  `json:"lines"`                 // of the program, that allocated most, largest first; at most 32
	Stages    []MemoryStage `json:"stage_peaks,omitempty"` // load, forward, backward, step; then the ranges that the program named
}

// MemoryKind is a part of the allocated memory.
type MemoryKind struct {
	Kind  string `json:"kind"`  // parameters, gradients, optimizer_state, activations, inputs or workspaces
	Bytes int    `json:"bytes"` // in blocks of the allocator
}

// CodeLine is a line of the program.
type CodeLine struct {
	File string `json:"file"` // below the working folder of the program, or absolute; empty if unknown
	Line int    `json:"line"` // from 1
	Code string `json:"code"` // its text, at most 64 characters
}

// MemoryLine is what a line of the program had allocated.
type MemoryLine struct {
	CodeLine
	Kind  string `json:"kind"`  // as in kinds
	Bytes int    `json:"bytes"` // in blocks of the allocator
}

// MemoryStage is the most that was allocated in a part of the program.
type MemoryStage struct {
	Name  string `json:"name"`                 // of a stage, or as the program names a range
	Bytes int    `json:"peak_allocated_bytes"` // of the device that was fullest
}

// MemoryFailure is a request that could not be served, and what had the memory then.
type MemoryFailure struct {
	MemoryUse
	Requested int      `json:"requested_bytes"` // by the program
	Used      int      `json:"used_bytes"`      // memory of the device that all programs had, with their contexts
	At        CodeLine `json:"at"`              // the line that made the request
	Stage     string   `json:"stage"`           // load, forward, backward or step
}

// StepWork is the work of one training step, which ends with that of an optimizer: of all steps the one that took least. In a program
// without an optimizer it is that of the whole program.
type StepWork struct {
	Count    int                `json:"steps"`                // of the program; 0 without an optimizer
	FLOPs    float64            `json:"flops"`                // as in total, of one step
	Least    map[string]float64 `json:"least_operations"`     // those that no algorithm avoids, by number format: fp32, tf32, fp16, bf16, fp64, int8, fp8
	ToDevice int                `json:"host_to_device_bytes"` // of one step
}

// Capacity is what fits writes.
type Capacity struct {
	Format
	Command  []string       `json:"command"`                 // with its arguments
	Compute  string         `json:"compute"`                 // of the simulated host: shapes or cpu; empty on a host with a GPU
	Smallest *SmallestCard  `json:"smallest"`                // null if no GPU runs the command
	Reason   string         `json:"reason,omitempty"`        // why nothing is known, with the end of what the command printed
	Needed   []NeededCard   `json:"needed"`                  // those of --need
	PeakMiB  int            `json:"peak_mib"`                // peak of one GPU with the largest memory that was tried, with contexts, MiB
	Cards    []CapacityCard `json:"cards"`                   // smallest memory first
	Peak     *MemoryUse     `json:"memory,omitempty"`        // what took the memory at the peak; missing on a host with a GPU
	Failure  *MemoryFailure `json:"out_of_memory,omitempty"` // on the largest GPU on which the command does not run
	Step     *StepWork      `json:"step,omitempty"`          // missing on a host with a GPU
}

// SmallestCard is the smallest GPU that runs the command.
type SmallestCard struct {
	Target      string `json:"target"`       // catalog key
	Name        string `json:"name"`         // RTX 2060
	MemoryMiB   int    `json:"memory_mib"`   // MiB
	HeadroomMiB int    `json:"headroom_mib"` // memory that the command leaves free, MiB
}

// NeededCard is a GPU that the command has to run on.
type NeededCard struct {
	Target string `json:"target"` // catalog key
	Runs   bool   `json:"runs"`   // the command runs on it
}

// CapacityCard is a group of GPUs with the same memory and generation, which run the command alike.
type CapacityCard struct {
	MemoryMiB   int          `json:"memory_mib"`              // MiB
	Targets     []string     `json:"targets"`                 // catalog keys; the first one stands for all
	Result      string       `json:"result"`                  // fits, under_pressure, does_not_fit, failed or unknown
	Tried       bool         `json:"tried"`                   // the command ran on it; otherwise the result follows from others
	PeakMiB     int          `json:"peak_mib"`                // that the result follows from, MiB
	Seconds     float64      `json:"seconds"`                 // that the command took; on a simulated host they say nothing about the GPU
	HeadroomMiB int          `json:"headroom_mib"`            // MiB; 0 if it does not fit
	Caught      int          `json:"caught"`                  // errors of memory that the program caught
	Rescued     int          `json:"freed_cache"`             // requests that were served only after the allocator had returned its cache
	LeastStep   *LeastSecond `json:"step_at_least,omitempty"` // of the first target
}

// LeastSecond is a time that a step cannot take less than. It is a bound, and no forecast.
type LeastSecond struct {
	Seconds float64 `json:"seconds"` // s
	By      string  `json:"by"`      // FP32, TF32, FP16, BF16, FP64, INT8, FP8 or PCIe
}
