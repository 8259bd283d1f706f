package public

// Target is a GPU of the catalog that sessions can show.
type Target struct {
	Key               string   `json:"key"`                    // rtx-2060
	Name              string   `json:"name"`                   // as NVML reports it: NVIDIA GeForce RTX 2060
	Aliases           []string `json:"aliases,omitempty"`      // other keys
	Architecture      string   `json:"architecture"`           // turing
	ComputeCapability string   `json:"compute_capability"`     // 7.5
	SMs               int      `json:"sms"`                    // number of streaming multiprocessors
	BoostMHz          int      `json:"boost_mhz"`              // boost clock, MHz
	MemoryMiB         int      `json:"memory_mib"`             // memory, MiB
	BusBits           int      `json:"bus_bits"`               // width of the memory bus, bits
	BandwidthGBs      float64  `json:"bandwidth_gbs"`          // memory bandwidth, GB/s
	L2MiB             float64  `json:"l2_mib"`                 // L2 cache, MiB
	PowerW            int      `json:"power_w"`                // board power, W
	PCIeGeneration    int      `json:"pcie_generation"`        // 3
	Year              int      `json:"year"`                   // of its release
	FP32TFLOPS        float64  `json:"fp32_tflops"`            // FP32 rate, TFLOPS
	TensorFP16TFLOPS  float64  `json:"tensor_fp16_tflops"`     // dense tensor rate with FP32 accumulate, TFLOPS; 0 without such cores
	TensorBF16TFLOPS  float64  `json:"tensor_bf16_tflops"`     // dense tensor rate, TFLOPS; 0 without such cores
	TensorFP8TFLOPS   float64  `json:"tensor_fp8_tflops"`      // dense tensor rate, TFLOPS; 0 without such cores
	TensorINT8TOPS    float64  `json:"tensor_int8_tops"`       // dense tensor rate, TOPS; 0 without such cores
	TensorTypes       []string `json:"tensor_types,omitempty"` // number formats of the tensor cores: fp16, bf16
	Source            string   `json:"source"`                 // of these figures
	Fraction          float64  `json:"fraction,omitempty"`     // the part of the card that the figures are of, for a session with a fraction
}

// Targets is what ls writes.
type Targets struct {
	Format
	Targets  []Target `json:"targets"`             // of the catalog, or those that match the filter
	Model    string   `json:"model,omitempty"`     // with --on or --max-error: the physical GPU that can present them
	MaxError *float64 `json:"max_error,omitempty"` // with --max-error: the largest error in FP32, a ratio
}

// TargetInfo is what info writes.
type TargetInfo struct {
	Format
	Target Target `json:"target"` // the one that was named
}

// Fits is what fit writes.
type Fits struct {
	Format
	Target     Target     `json:"target"`           // GPU to show
	Model      Model      `json:"model"`            // physical GPU
	Where      string     `json:"where"`            // source of the model: the catalog, or a GPU of this machine
	Options    FitOptions `json:"options"`          // preferences
	Candidates []Figures  `json:"candidates"`       // slices that hold the target, the best first
	Limits     []string   `json:"limits"`           // what cannot be hidden, in words
	Shares     []Share    `json:"shares,omitempty"` // with --sharing: by kind of sharing
	Error      string     `json:"error,omitempty"`  // why cosplay would take no candidate
}

// FitMatrix is what fit --matrix writes.
type FitMatrix struct {
	Format
	Model   Model      `json:"model"`   // physical GPU
	Where   string     `json:"where"`   // source of the model: the catalog, or a GPU of this machine
	Options FitOptions `json:"options"` // preferences
	Choices []Choice   `json:"choices"` // one for each target of the catalog
}

// Choice is the slice that cosplay would choose for a target.
type Choice struct {
	Target    string   `json:"target"`          // key of the target: rtx-2060
	Name      string   `json:"name"`            // as NVML reports it: NVIDIA GeForce RTX 2060
	MemoryMiB int      `json:"memory_mib"`      // memory of the target, MiB
	Fit       *Figures `json:"fit,omitempty"`   // slice, clock and figures; missing if no slice holds the target
	Error     string   `json:"error,omitempty"` // why no slice holds the target
}

// Share is what sessions of a target get of an empty GPU by one kind of sharing.
type Share struct {
	Sharing  string  `json:"sharing"`           // mig, exclusive, time-slice or mps
	Sessions int     `json:"sessions"`          // that fit at most; cosplay places up to 15 of one target on a GPU
	Profile  string  `json:"profile,omitempty"` // of the session with the worst fit while all are busy; missing on the whole GPU
	Percent  int     `json:"percent,omitempty"` // of the SMs, by MPS
	Alone    Figures `json:"alone"`             // of that session while the others are idle
	Busy     Figures `json:"busy"`              // of that session while all are busy
}

// Model is what a kind of physical GPU offers.
type Model struct {
	Name              string    `json:"name"`                     // as NVML reports it: NVIDIA H200
	ComputeCapability string    `json:"compute_capability"`       // 9.0
	SMs               int       `json:"sms"`                      // number of streaming multiprocessors
	MemoryMiB         int       `json:"memory_mib"`               // memory, MiB
	BandwidthGBs      float64   `json:"bandwidth_gbs"`            // memory bandwidth, GB/s
	L2MiB             float64   `json:"l2_mib"`                   // L2 cache, MiB
	ClocksMHz         []int     `json:"clocks_mhz"`               // SM clocks that can be locked, MHz, ascending
	PowerMinMW        int       `json:"power_min_mw"`             // lowest power limit, mW
	PowerDefaultMW    int       `json:"power_default_mw"`         // default power limit, mW
	PowerMaxMW        int       `json:"power_max_mw"`             // highest power limit, mW
	FP32PerSM         float64   `json:"fp32_per_sm"`              // FLOP per clock and SM
	TensorPerSM       float64   `json:"tensor_per_sm"`            // dense FP16 FLOP with FP32 accumulate per clock and SM; 0 without tensor cores
	MemorySlices      int       `json:"memory_slices,omitempty"`  // number of slots; missing without MIG
	ComputeSlices     int       `json:"compute_slices,omitempty"` // number of compute slices; missing without MIG
	Profiles          []Profile `json:"profiles,omitempty"`       // MIG profiles; missing without MIG
}

// Profile is a profile of GPU instances.
type Profile struct {
	Name          string `json:"name"`           // 1g.18gb
	ID            int    `json:"id"`             // as nvidia-smi numbers profiles
	SMs           int    `json:"sms"`            // number of streaming multiprocessors
	MemoryMiB     int    `json:"memory_mib"`     // memory, MiB
	MemorySlices  int    `json:"memory_slices"`  // number of slots that an instance takes
	ComputeSlices int    `json:"compute_slices"` // number of compute slices of an instance
	MaxInstances  int    `json:"max_instances"`  // on one GPU
	Starts        []int  `json:"starts"`         // slots at which an instance may begin
}

// Settings are settings of a physical GPU. A missing one is not managed, or not known.
type Settings struct {
	MIG         *bool   `json:"mig,omitempty"`          // MIG mode is on
	Persistence *bool   `json:"persistence,omitempty"`  // persistence mode is on
	ClockMHz    *int    `json:"clock_mhz,omitempty"`    // lock of the SM clock, MHz; 0 is unlocked
	PowerMW     *int    `json:"power_mw,omitempty"`     // power limit, mW
	ComputeMode *string `json:"compute_mode,omitempty"` // default, exclusive process, prohibited
	TimeSlice   *string `json:"timeslice,omitempty"`    // length of the driver's time slices: default, short, medium, long
}

// Engine is a container engine.
type Engine struct {
	Name   string `json:"name"`   // Docker 20.10.24
	Access string `json:"access"` // how a container gets its slice, in words
}

// Unusable is a GPU that does not answer.
type Unusable struct {
	Index   int    `json:"index"`          // number that the driver gives it, from 0
	UUID    string `json:"uuid,omitempty"` // missing if the GPU does not report it
	Call    string `json:"call"`           // NVML function that failed
	Code    int    `json:"code"`           // NVML's code
	Message string `json:"message"`        // NVML's text for the code
}

// Degradation is a feature that cosplay does without on a GPU.
type Degradation struct {
	Feature string `json:"feature"`           // mig, clock, power, persistence, compute-mode, time-slice-length, or a figure or reading
	Call    string `json:"call"`              // NVML function that failed
	Code    int    `json:"code"`              // NVML's code; 13 also where the library does not have the function
	Message string `json:"message,omitempty"` // NVML's text for the code
	Set     bool   `json:"set,omitempty"`     // the call changes the GPU: its value can still be read
}

// Process is a process that uses a GPU.
type Process struct {
	PID             int    `json:"pid"`                        // process ID
	Name            string `json:"name,omitempty"`             // of its program
	MemoryMiB       int    `json:"memory_mib"`                 // GPU memory that it uses, MiB
	GPUInstance     *int   `json:"gpu_instance,omitempty"`     // ID of the GPU instance; missing on a whole GPU
	ComputeInstance *int   `json:"compute_instance,omitempty"` // ID of the compute instance; missing where the driver does not report it
	Session         string `json:"session,omitempty"`          // ID of the session that it runs in, where known
}

// Holder is a project that has acquired a GPU.
type Holder struct {
	Lineage string `json:"lineage"` // of its state
	User    string `json:"user"`    // who acquired the GPU
	State   string `json:"state"`   // path of its state
	Since   string `json:"since"`   // RFC 3339
	Slices  int    `json:"slices"`  // number of slices that it has on the GPU
}
