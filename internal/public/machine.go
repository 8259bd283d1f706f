package public

// Machine is what status, ps and map write in a folder without a project.
type Machine struct {
	Format
	Host     *Host            `json:"host"`             // this machine; null where its GPUs cannot be read
	Unread   string           `json:"unread,omitempty"` // why they cannot be read, in words
	Projects []MachineProject `json:"projects"`         // that hold a GPU, and those of detached sessions on simulated hosts, by user and state
	Waiting  []Waiting        `json:"waiting"`          // projects that wait for room, in their order
}

// MachineProject is a project that holds GPUs of the machine, or that of a detached session on a simulated host.
type MachineProject struct {
	Lineage   string           `json:"lineage"`             // of its state
	User      string           `json:"user"`                // who acquired the GPUs
	State     string           `json:"state"`               // path of its state
	Folder    string           `json:"folder"`              // of the state; of a run, the folder in which it was started
	Run       bool             `json:"run"`                 // it is a cosplay run
	Lost      bool             `json:"lost"`                // its state is lost, or it is a run that was killed: cosplay reset can release the GPUs
	Held      []HeldGPU        `json:"held"`                // GPUs, by UUID
	Readable  bool             `json:"readable"`            // the user can read its state
	Simulated bool             `json:"simulated,omitempty"` // it holds no GPU of the machine: its session is on a simulated host
	Sessions  []MachineSession `json:"sessions"`            // by address; empty where the state cannot be read
}

// HeldGPU is a GPU that a project holds.
type HeldGPU struct {
	UUID   string     `json:"uuid"`   // GPU-...
	Since  string     `json:"since"`  // RFC 3339
	Whole  bool       `json:"whole"`  // the project has it without MIG
	Slices []GPUSlice `json:"slices"` // that the project has created
}

// MachineSession is a session of a project that holds GPUs of the machine.
type MachineSession struct {
	Address   string  `json:"address"`               // session.worker[0]
	Name      string  `json:"name"`                  // short address, as users type it: worker-0
	ID        string  `json:"id"`                    // names the session on its host
	Target    string  `json:"target"`                // key of the target
	Slices    []Slice `json:"slices"`                // by device
	UpAt      string  `json:"up_at,omitempty"`       // when it came up, RFC 3339; missing if unknown
	ExpiresAt string  `json:"expires_at,omitempty"`  // when it expires if it is not active until then, RFC 3339; missing if never
	ExpiresBy string  `json:"expires_by,omitempty"`  // ttl, idle_timeout or stop_at
	TimeLeft  *int    `json:"time_left_s,omitempty"` // until then, s; 0 if it has expired
}

// Waiting is a project that waits for room.
type Waiting struct {
	User string   `json:"user"` // who waits
	GPUs []string `json:"gpus"` // UUIDs of the GPUs on which it could get room
}
