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
	Launches    int64                 // operations that wrote memory of a device
	FLOPs       float64               // floating point operations of matrix products and convolutions
	ToDevice    int64                 // bytes copied from the host to devices
	ToHost      int64                 // bytes copied from devices to the host
	Between     int64                 // bytes copied between devices
	Collectives map[string]Collective // by kind: all_reduce
}

// Collective is a kind of communication between the processes of a group, as each process counts it.
type Collective struct {
	Count int64
	Bytes int64 // of the tensors that the process gave
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

	OutOfMemory int    // how often PyTorch raised its error
	Refusal     string // text of the last such error
	Failure     string // type of the exception that ended the program: OutOfMemoryError; "" if none did
	FailureText string
}

// DevicePeak is the peak of a program's memory on a device, in bytes, as PyTorch's allocator counts it.
type DevicePeak struct {
	Index               int
	Allocated, Reserved int64
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
