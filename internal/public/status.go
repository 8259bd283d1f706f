package public

// Status is what status writes.
type Status struct {
	Format
	Hosts    []Host          `json:"hosts"`             // by name
	Sessions []SessionStatus `json:"sessions"`          // of the project, by address
	Missing  []string        `json:"missing"`           // addresses of sessions that an interrupted run had to create
	Drift    []Drift         `json:"drift"`             // what differs from the last apply
	HasDrift bool            `json:"has_drift"`         // something that cosplay manages was changed outside of it
	Orphans  []Container     `json:"orphans"`           // containers of the project without a session
	Expired  []Expired       `json:"expired,omitempty"` // sessions that have expired and were ended
}

// Sessions is what ps writes.
type Sessions struct {
	Format
	Sessions []SessionStatus `json:"sessions"` // of the project, by address
}

// Host is a machine with GPUs.
type Host struct {
	PlanHost
	Library  string     `json:"library"`  // NVML library that was read
	BootID   string     `json:"boot_id"`  // changes with each reboot
	GPUs     []GPU      `json:"gpus"`     // by index
	Unusable []Unusable `json:"unusable"` // GPUs that do not answer
}

// GPU is a physical GPU as NVML shows it.
type GPU struct {
	UUID         string        `json:"uuid"`            // GPU-...
	Index        int           `json:"index"`           // number that the driver gives it, which a reboot can change
	PCI          string        `json:"pci"`             // 00000000:84:00.0
	Name         string        `json:"name"`            // as NVML reports it
	MIGCapable   bool          `json:"mig_capable"`     // it has MIG
	MIG          bool          `json:"mig"`             // MIG mode is on
	MIGPending   bool          `json:"mig_pending"`     // MIG mode is on after the next reset
	Persistence  bool          `json:"persistence"`     // persistence mode is on
	PowerLimitW  float64       `json:"power_limit_w"`   // W
	PowerDrawW   float64       `json:"power_draw_w"`    // W
	SMClockMHz   int           `json:"sm_clock_mhz"`    // MHz
	ClockLock    string        `json:"clock_lock"`      // what is known of cosplay's lock: none, held, unlocked, lifted or unknown
	ClockLockMHz *int          `json:"clock_lock_mhz"`  // MHz, where the lock is held; else null
	Temperature  int           `json:"temperature_c"`   // °C
	MemoryMiB    int           `json:"memory_mib"`      // MiB
	MemoryUsed   int           `json:"memory_used_mib"` // MiB
	Acquired     bool          `json:"in_hand"`         // the project has acquired it
	Slices       []GPUSlice    `json:"slices"`          // MIG slices
	Processes    int           `json:"processes"`       // number of processes that use it
	Holders      []GPUHolder   `json:"holders"`         // other projects that have acquired it
	ComputeMode  string        `json:"compute_mode"`    // default, exclusive process, prohibited, or NVML's number
	MPS          []MPSDaemon   `json:"mps"`             // control daemons that the project runs
	Degraded     []Degradation `json:"degraded"`        // what the driver does not offer; the fields that need it are 0
}

// MPSDaemon is a control daemon of the project, with the limits that apply set.
type MPSDaemon struct {
	Folder    string `json:"folder"`            // with its pipes and logs
	Profile   string `json:"profile,omitempty"` // of the MIG slice that it serves; missing for the whole GPU
	Start     int    `json:"start,omitempty"`   // first slot of that slice
	Percent   int    `json:"percent,omitempty"` // active thread percentage of programs without one; missing before Volta
	MemoryMiB int    `json:"memory_mib"`        // of one program, MiB
	Running   bool   `json:"running"`           // it runs
	AsApplied bool   `json:"as_applied"`        // it runs with these limits, as far as it can be asked
}

// GPUHolder is another project that has acquired a GPU.
type GPUHolder struct {
	Holder
	Lost bool `json:"gone"` // its state is lost: cosplay reset can release the GPU
}

// GPUSlice is a MIG slice of a GPU.
type GPUSlice struct {
	UUID            string  `json:"uuid"`             // of the MIG device
	GPUInstance     int     `json:"gpu_instance"`     // ID on the GPU
	ComputeInstance int     `json:"compute_instance"` // ID in the GPU instance
	Profile         string  `json:"profile"`          // 1g.18gb
	Start           int     `json:"start"`            // first slot
	Size            int     `json:"size"`             // number of slots
	Ours            bool    `json:"ours"`             // it is a session's of the project
	Session         *string `json:"session"`          // address of that session; null for a foreign slice

	ComputeStart int `json:"compute_start,omitempty"` // as in Slice

	Others []string `json:"others,omitempty"` // addresses of the sessions that share it with that session
}

// SessionStatus is a session and the state that it is in.
type SessionStatus struct {
	Made
	ID         string  `json:"id"`                    // names the session on its host; it never changes
	Target     string  `json:"target"`                // key of the target
	MemoryMiB  int     `json:"memory_mib"`            // GPU memory that its programs see, MiB
	Fit        Figures `json:"fit"`                   // how close the slice is to the target
	Workspace  string  `json:"workspace"`             // absolute path of its folder
	State      string  `json:"state"`                 // running, stopped, paused, restarting, or what is missing
	Unfinished bool    `json:"unfinished"`            // an apply has to complete it
	Used       *Usage  `json:"used"`                  // null where it is not counted, or nothing was used
	Work       *Work   `json:"work,omitempty"`        // what its programs did, where PyTorch computes on the CPU; missing if they did nothing
	Drift      []Drift `json:"drift"`                 // of this session
	ExpiresAt  string  `json:"expires_at,omitempty"`  // when it expires if it is not active until then, RFC 3339; missing if never
	ExpiresBy  string  `json:"expires_by,omitempty"`  // ttl, idle_timeout or stop_at
	TimeLeft   *int    `json:"time_left_s,omitempty"` // until then, s; 0 if it has expired
}
