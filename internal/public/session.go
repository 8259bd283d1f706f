package public

// Slice is the part of a physical GPU that a session has.
type Slice struct {
	Host    string `json:"host"`              // name of the host
	GPU     string `json:"gpu"`               // UUID of the GPU
	Profile string `json:"profile,omitempty"` // MIG profile: 1g.18gb; missing for a whole GPU
	Start   int    `json:"start"`             // first slot
	Size    int    `json:"size"`              // number of slots; 0 for a whole GPU
	Sharing string `json:"sharing,omitempty"` // time-slice or mps of a slice or a whole GPU that other sessions may have, too
	Percent int    `json:"percent,omitempty"` // with mps: of the SMs

	ComputeStart   int  `json:"compute_start,omitempty"`  // of a compute instance smaller than its GPU instance, as 1c.2g.35gb: its first compute slice there; missing for 0
	Oversubscribed bool `json:"oversubscribed,omitempty"` // the sessions that share it may use more memory together than it has
}

// Handle is what identifies a slice for the driver.
type Handle struct {
	GPUInstance     int    `json:"gpu_instance"`     // ID on the GPU, which the driver uses again; -1 where it is not known yet
	ComputeInstance int    `json:"compute_instance"` // ID in the GPU instance
	UUID            string `json:"uuid,omitempty"`   // of the MIG device, or of a whole GPU; missing without a compute instance
	Boot            string `json:"boot,omitempty"`   // boot ID of the host in which it exists
	Shared          bool   `json:"shared,omitempty"` // processes outside the session use the whole GPU
}

// Session is a session with every choice made.
type Session struct {
	Address        string            `json:"address"`                   // session.worker[0]
	ID             string            `json:"id"`                        // names the session on its host; it never changes
	Target         Target            `json:"target"`                    // GPU that its programs see
	Request        Request           `json:"request"`                   // what the configuration asks for
	Slice          Slice             `json:"slice"`                     // where it is
	More           []Slice           `json:"more_slices,omitempty"`     // of its other devices: other GPUs
	Fit            Fit               `json:"fit"`                       // how close the slice is to the target
	Runtime        string            `json:"runtime"`                   // docker, cdi or process
	Device         string            `json:"device,omitempty"`          // name of its CDI device, as engines take it; missing without one
	Command        []string          `json:"command,omitempty"`         // program and arguments
	Workspace      string            `json:"workspace"`                 // absolute path of its folder
	Env            map[string]string `json:"env,omitempty"`             // environment variables that are not sensitive
	Strict         bool              `json:"strict,omitempty"`          // frameworks refuse number formats that the target lacks
	Capability     string            `json:"capability"`                // whose compute capability PyTorch reports: target, or real for the GPU's
	Compute        string            `json:"compute,omitempty"`         // how PyTorch computes on a simulated host: cpu, shapes or none; missing on hardware
	Lifetime       Lifetime          `json:"lifetime,omitzero"`         // when it expires; missing if it does not
	Spec           ContainerSpec     `json:"box,omitzero"`              // container to create; missing where the runtime has no containers
	Sealed         map[string]string `json:"sealed_env,omitempty"`      // keyed hashes of the sensitive environment variables
	DependsOn      []string          `json:"depends_on,omitempty"`      // names of blocks whose sessions start before this one
	PreventDestroy bool              `json:"prevent_destroy,omitempty"` // cosplay refuses to remove it
	Trigger        string            `json:"trigger,omitempty"`         // digest of the values of replace_triggered_by
}

// Lifetime is after what a session expires.
type Lifetime struct {
	TTL         int    `json:"ttl_s,omitempty"`          // after it came up, s
	IdleTimeout int    `json:"idle_timeout_s,omitempty"` // without activity, s
	StopAt      string `json:"stop_at,omitempty"`        // RFC 3339, UTC
}

// Request is what decides where a session runs.
type Request struct {
	Host   string     `json:"host"`          // name of the host
	GPU    string     `json:"gpu,omitempty"` // UUID of the GPU that the configuration asks for; missing where cosplay chooses
	Target string     `json:"target"`        // key of the target
	Fit    FitOptions `json:"fit"`           // preferences

	Sharing  string  `json:"sharing,omitempty"`  // mig, exclusive, time-slice or mps; missing for auto
	Fraction float64 `json:"fraction,omitempty"` // part of the host's own GPU, which is the target then
	GPUs     int     `json:"gpus,omitempty"`     // number of devices, if there are several
}

// FitOptions are the values of a fit block.
type FitOptions struct {
	Prefer    string   `json:"prefer"`              // fp32, bandwidth or balanced
	Tolerance float64  `json:"tolerance"`           // ratio within which the smallest slice is taken: 0.1 is 10 %
	MaxError  *float64 `json:"max_error,omitempty"` // ratio above which a fit is refused; missing for no limit
}

// Fit is how close a slice is to a target.
type Fit struct {
	Profile  string   `json:"profile,omitempty"` // MIG profile; missing for a whole GPU
	ClockMHz int      `json:"clock_mhz"`         // SM clock for which the figures hold, MHz
	Got      Envelope `json:"got"`               // what the slice offers
	Want     Envelope `json:"want"`              // what the target offers
}

// Figures is a fit with its ratios. An error is |ln ratio|: 0.05 is about 5 %.
type Figures struct {
	Profile        string   `json:"profile"`         // MIG profile; "" for a whole GPU
	ClockMHz       int      `json:"clock_mhz"`       // SM clock for which the figures hold, MHz
	Got            Envelope `json:"got"`             // what the slice offers
	Want           Envelope `json:"want"`            // what the target offers
	FP32Ratio      *float64 `json:"fp32_ratio"`      // FP32 rate of the slice divided by that of the target; null if not defined
	FP32Error      *float64 `json:"fp32_error"`      // error of the FP32 rate; null if not defined
	BandwidthRatio *float64 `json:"bandwidth_ratio"` // memory bandwidth of the slice divided by that of the target; null if not defined
	BandwidthError *float64 `json:"bandwidth_error"` // error of the bandwidth; null if not defined
	TensorRatio    *float64 `json:"tensor_ratio"`    // tensor rate of the slice divided by that of the target; 0 for a target without tensor cores
}

// Envelope is the throughput of a GPU or slice.
type Envelope struct {
	SMs          int     `json:"sms"`           // number of streaming multiprocessors
	FP32TFLOPS   float64 `json:"fp32_tflops"`   // FP32 rate, TFLOPS
	TensorTFLOPS float64 `json:"tensor_tflops"` // dense FP16 tensor rate with FP32 accumulate, TFLOPS; 0 without tensor cores
	BandwidthGBs float64 `json:"bandwidth_gbs"` // memory bandwidth, GB/s
	MemoryMiB    int     `json:"memory_mib"`    // memory, MiB
}

// ContainerSpec is what a container is created from.
type ContainerSpec struct {
	Name       string   `json:"name,omitempty"`       // of the container; missing if cosplay chose it
	Image      string   `json:"image"`                // name with tag
	Pull       string   `json:"pull"`                 // missing, never or always
	Entrypoint []string `json:"entrypoint,omitempty"` // program before the command; the word image alone is that of the image
	Volumes    []Volume `json:"volumes,omitempty"`    // in their order
	Ports      []Port   `json:"ports,omitempty"`      // published, besides that of ssh
	Network    string   `json:"network,omitempty"`    // of the engine; missing for its default
	SSH        SSH      `json:"ssh"`                  // login
	Limits     Limits   `json:"limits"`               // of the machine's resources
	Sudo       bool     `json:"sudo"`                 // the user may become root without a password
	Restart    string   `json:"restart"`              // restart policy of the engine
	User       User     `json:"user"`                 // in the container
}

// Port is a port of a container that the engine publishes on the host.
type Port struct {
	Bind      string `json:"bind"`      // address on the host
	Host      int    `json:"host"`      // port on the host
	Container int    `json:"container"` // port in the container
	Protocol  string `json:"protocol"`  // tcp or udp
}

// Volume is a folder of the host, or a named volume, in a container.
type Volume struct {
	Source   string `json:"source"`              // absolute path on the host, or name of a volume
	Target   string `json:"target"`              // absolute path in the container
	ReadOnly bool   `json:"read_only,omitempty"` // it cannot be changed in the container
}

// SSH is the login of a container as it is configured.
type SSH struct {
	Enabled        bool     `json:"enabled"`                   // there is an ssh server
	Port           int      `json:"port"`                      // on the host; 0 for one that cosplay chooses
	Kept           int      `json:"kept,omitempty"`            // the port that cosplay chose
	Bind           string   `json:"bind"`                      // address of the host at which it listens
	AuthorizedKeys []string `json:"authorized_keys,omitempty"` // public keys that may log in
}

// Limits are what a container may use of the machine. A missing one is no limit.
type Limits struct {
	CPUs      float64 `json:"cpus,omitempty"`       // number of processors
	MemoryMiB int     `json:"memory_mib,omitempty"` // memory of the machine, MiB
	ShmMiB    int     `json:"shm_mib,omitempty"`    // shared memory, MiB
	PIDs      int     `json:"pids,omitempty"`       // number of processes
}

// User is the account of a session.
type User struct {
	Name  string `json:"name"`  // login name
	UID   int    `json:"uid"`   // user ID
	GID   int    `json:"gid"`   // group ID
	Group string `json:"group"` // name of the group
}

// Container is the container of a session, or its folder with the process runtime.
type Container struct {
	ID       string     `json:"id"`                 // ID of the container, or path of the folder
	Session  string     `json:"session"`            // ID of the session
	Host     string     `json:"host"`               // name of the host
	Runtime  string     `json:"runtime"`            // docker or process
	State    string     `json:"state"`              // running, stopped, paused or restarting
	Hash     string     `json:"hash"`               // keyed hash of the session that it was created from
	SliceID  string     `json:"slice"`              // UUID of its MIG slice or whole GPU
	Image    string     `json:"image,omitempty"`    // ID of its image
	SSHPort  int        `json:"ssh_port,omitempty"` // on the host; missing without ssh
	Damaged  string     `json:"damaged,omitempty"`  // what of the disguise was changed, in words
	Foreign  bool       `json:"foreign,omitempty"`  // it was imported, and cosplay did not create it
	Serial   int        `json:"serial,omitempty"`   // of the state after the run that created it
	Open     bool       `json:"open,omitempty"`     // sensitive values are in its environment, where docker inspect shows them
	Bounds   *Bounds    `json:"bounds,omitempty"`   // limits that it has now
	Outdated []Outdated `json:"outdated,omitempty"` // parts of the disguise that this cosplay would make differently
}

// Bounds are the limits of a container that exists. A missing one is no limit.
type Bounds struct {
	MilliCPUs int    `json:"milli_cpus,omitempty"` // thousandths of a processor
	MemoryMiB int    `json:"memory_mib,omitempty"` // memory of the machine, MiB
	PIDs      int    `json:"pids,omitempty"`       // number of processes
	Restart   string `json:"restart"`              // restart policy of the engine
}

// Outdated is a part of a disguise that another cosplay, or another driver, left.
type Outdated struct {
	Part string `json:"part"` // facades or driver
	From string `json:"from"` // version that the session has
	To   string `json:"to"`   // version that it would get now
}

// Login is where a user can log in now.
type Login struct {
	Host string `json:"host"` // address at which the host listens
	Port int    `json:"port"` // on the host
	User string `json:"user"` // login name
}
