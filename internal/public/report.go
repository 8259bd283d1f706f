package public

// Reports is what report writes.
type Reports struct {
	Format
	Sessions []Report `json:"sessions"` // that were named, by address
}

// Report is what the programs of a session did on its devices, where the CPU computes for them. It lasts as long as the
// session.
type Report struct {
	Address   string          `json:"address"`          // session.worker[0]
	Name      string          `json:"name"`             // short address, as users type it: worker-0
	Target    string          `json:"target"`           // key of the target
	MemoryMiB int             `json:"memory_mib"`       // GPU memory of each device, MiB
	Devices   []ReportDevice  `json:"devices"`          // in the order in which programs see them
	Total     Work            `json:"total"`            // of all programs
	Earlier   int             `json:"earlier_programs"` // number of programs that the total includes and programs does not
	Programs  []ReportProgram `json:"programs"`         // processes that used a device, the last 32, by their start
}

// ReportDevice is a device of a session.
type ReportDevice struct {
	Index   int `json:"index"`    // 0 is cuda:0
	PeakMiB int `json:"peak_mib"` // peak GPU memory of all programs together, with contexts, MiB
}

// Work is what programs did on devices.
type Work struct {
	Launches    int              `json:"launches"`               // operations that wrote memory of a device
	FLOPs       float64          `json:"flops"`                  // floating point operations of matrix products and convolutions, counted as torch.utils.flop_counter does
	ToDevice    int              `json:"host_to_device_bytes"`   // bytes copied from the host to devices
	ToHost      int              `json:"device_to_host_bytes"`   // bytes copied from devices to the host
	Between     int              `json:"device_to_device_bytes"` // bytes copied from one device to another
	Collectives []CollectiveWork `json:"collectives"`            // by kind
}

// CollectiveWork is a kind of communication between processes. Each process counts its part.
type CollectiveWork struct {
	Kind  string `json:"kind"`  // all_gather, all_reduce, all_to_all, barrier, broadcast, gather, recv, reduce, reduce_scatter, scatter or send
	Count int    `json:"count"` // number of calls
	Bytes int    `json:"bytes"` // of the tensors that the process gave; of recv, of the tensor that it got
}

// ReportProgram is a process of a session that used a device.
type ReportProgram struct {
	Work
	PID         int                   `json:"pid"`               // in the session
	Name        string                `json:"name"`              // of its script or module
	Rank        *int                  `json:"rank,omitempty"`    // in its process group; missing without one
	Start       string                `json:"start"`             // RFC 3339
	Updated     string                `json:"updated"`           // when it wrote these figures, RFC 3339
	End         string                `json:"end,omitempty"`     // RFC 3339; missing if it still runs, or was killed
	Devices     []ReportProgramDevice `json:"devices"`           // that it used, by index
	Memory      *MemoryUse            `json:"memory,omitempty"`  // what took the memory at its peak, of the device that was fullest
	Refused     *MemoryFailure        `json:"refused,omitempty"` // the last request that could not be served; missing without one
	Rescued     int                   `json:"freed_cache"`       // requests that were served only after the allocator had returned its cache
	Step        *StepWork             `json:"step,omitempty"`    // missing before an optimizer's first step
	OutOfMemory int                   `json:"out_of_memory"`     // how often PyTorch raised its error; the program may have caught it
	Failure     *ReportFailure        `json:"failure,omitempty"` // exception that ended it; missing if none did
}

// ReportProgramDevice is the peak memory of a program on a device, as PyTorch's allocator counts it.
type ReportProgramDevice struct {
	Index     int `json:"index"`                // 0 is cuda:0
	Allocated int `json:"peak_allocated_bytes"` // of tensors, bytes
	Reserved  int `json:"peak_reserved_bytes"`  // with memory that the allocator caches, bytes
}

// ReportFailure is an exception that ended a program.
type ReportFailure struct {
	Type string `json:"type"` // OutOfMemoryError
	Text string `json:"text"` // on one line, at most 640 characters
}
