package resource

// Report is what the programs of a session did on its devices. PyTorch's part of the disguise counts it where the CPU
// computes.
type Report struct {
	Peaks    []int           // peak memory of each device, MiB; nil if unknown
	Earlier  int             // number of programs that Total includes and Programs does not
	Total    Work            // of all programs
	Programs []ProgramReport // that used a device, the last ones, by start
}

// Work is what programs did.
type Work struct {
	Launches    int                   // operations that wrote memory of a device
	FLOPs       float64               // floating point operations of matrix products and convolutions
	ToDevice    int                   // bytes copied from the host to devices
	ToHost      int                   // bytes copied from devices to the host
	Between     int                   // bytes copied between devices
	Collectives map[string]Collective // by kind: all_reduce
}

// Collective is a kind of communication between the processes of a group, as each process counts it.
type Collective struct {
	Count int
	Bytes int // of the tensors that the process gave
}

// ProgramReport is a process of a session that used a device.
type ProgramReport struct {
	Work
	PID     int // in the session's pid namespace
	Name    string
	Rank    *int    // in its process group; nil without one
	Start   float64 // Unix time, s
	Updated float64 // when it wrote its figures last
	End     float64 // 0 if it still runs, or was killed
	Devices []DevicePeak

	Fullest *MemoryUse         // what took the memory when most was reserved; nil if the program did not report it
	Error   *MemoryFailure     // the last request that could not be served; nil without one
	Rescued int                // requests that were served only after the allocator had returned its cache
	Least   map[string]float64 // floating point operations of the program that no algorithm avoids, by number format
	Step    *StepWork          // nil without an optimizer

	WithoutValues string // an operation that only compute = "cpu" has a result of, where the host has "shapes"

	OutOfMemory int    // how often PyTorch raised its error
	Refusal     string // text of the last such error
	Failure     string // type of the exception that ended the program: OutOfMemoryError; "" if none did
	FailureText string
}

// DevicePeak is the peak of a program's memory on a device, in bytes, as PyTorch's allocator counts it.
type DevicePeak struct {
	Index               int
	Allocated, Reserved int
}

// MemoryKinds are what memory is for, in the order in which it is shown.
var MemoryKinds = []string{"parameters", "gradients", "optimizer_state", "activations", "inputs", "workspaces"}

// MemoryUse says what the allocated memory of a device was for, at one moment. All figures are bytes.
type MemoryUse struct {
	Device    int
	Reserved  int            // with the cache of the allocator
	Allocated int            // of tensors and workspaces
	Kinds     map[string]int // by MemoryKinds
	Lines     []MemoryLine   // of the program, those with most bytes, in that order; a line has an entry for each kind
	Stages    []NamedBytes   // the most that was allocated in each stage: load, forward, backward, step
	Ranges    []NamedBytes   // and in each range that the program named
}

// MemoryLine is what a line of the program allocated.
type MemoryLine struct {
	CodeLine
	Kind  string
	Bytes int
}

// CodeLine is a line of the program.
type CodeLine struct {
	File string // below the working folder, or absolute; "" if unknown
	Line int
	Code string
}

// NamedBytes are the bytes of a stage or range.
type NamedBytes struct {
	Name  string
	Bytes int
}

// MemoryFailure is a request that could not be served, and what had the memory then.
type MemoryFailure struct {
	MemoryUse
	Requested int
	Used      int // memory of the device that all programs had, with their contexts
	At        CodeLine
	Stage     string
}

// StepWork is the work of the training step that took least. A step ends with that of an optimizer. Its JSON is that of
// a program's slot in the report file.
type StepWork struct {
	Count    int                `json:"count"`     // steps of the program
	FLOPs    float64            `json:"flops"`     // floating point operations of one
	Least    map[string]float64 `json:"least"`     // those that no algorithm avoids, by number format: "fp32"
	ToDevice int                `json:"to_device"` // bytes copied from the host
}

// Add adds other work.
func (w *Work) Add(other Work) {
	w.Launches += other.Launches
	w.FLOPs += other.FLOPs
	w.ToDevice += other.ToDevice
	w.ToHost += other.ToHost
	w.Between += other.Between
	for kind, c := range other.Collectives {
		if w.Collectives == nil {
			w.Collectives = map[string]Collective{}
		}
		before := w.Collectives[kind]
		w.Collectives[kind] = Collective{before.Count + c.Count, before.Bytes + c.Bytes}
	}
}

// RanOut reports whether the program ended because its memory was not enough.
func (p ProgramReport) RanOut() bool { return p.Failure == "OutOfMemoryError" }

// Took is how long the program ran, or had run when it wrote its figures last, in s.
func (p ProgramReport) Took() float64 {
	if p.End == 0 {
		return max(0, p.Updated-p.Start)
	}
	return max(0, p.End-p.Start)
}

// Empty reports whether no program used a device.
func (r Report) Empty() bool { return r.Earlier == 0 && len(r.Programs) == 0 }
