package public

// Top is one line of cosplay top --json: a reading of what changes from second to second.
type Top struct {
	Format
	Time     string       `json:"time"`      // RFC 3339, UTC; the use of memory was read then
	GPUsTime string       `json:"gpus_time"` // when gpus, utilizations and processes were read; earlier where that takes much processor time
	AllTime  string       `json:"all_time"`  // when states, drift and the rest were read
	GPUs     []TopGPU     `json:"gpus"`      // of all hosts that could be read
	Sessions []TopSession `json:"sessions"`  // of the project, sorted as --sort says
	HasDrift bool         `json:"has_drift"` // something that cosplay manages was changed outside of it
}

// TopGPU is a GPU in use.
type TopGPU struct {
	Host         string  `json:"host"`                // name of the host
	UUID         string  `json:"uuid"`                // GPU-...
	Index        int     `json:"index"`               // number that the driver gives it, which a reboot can change
	Utilization  *int    `json:"utilization_percent"` // null where the driver does not report it, as in MIG mode
	SMClockMHz   int     `json:"sm_clock_mhz"`        // MHz
	ClockLockMHz *int    `json:"clock_lock_mhz"`      // MHz, where cosplay's lock is in effect; else null
	PowerDrawW   float64 `json:"power_draw_w"`        // W
	PowerLimitW  float64 `json:"power_limit_w"`       // W
	Temperature  int     `json:"temperature_c"`       // °C
	MemoryUsed   int     `json:"memory_used_mib"`     // MiB
	MemoryMiB    int     `json:"memory_mib"`          // MiB
	Processes    int     `json:"processes"`           // number of processes that use it
}

// TopSession is a session in use.
type TopSession struct {
	Address     string       `json:"address"`             // session.worker[0]
	Name        string       `json:"name"`                // short address, as users type it: worker-0
	Host        string       `json:"host"`                // name of the host
	State       string       `json:"state"`               // running, stopped, paused, restarting, or what is missing
	Utilization *int         `json:"utilization_percent"` // of its GPU or GPU instance; null where the driver does not report it
	LimitBytes  int          `json:"limit_bytes"`         // GPU memory that its programs may use on all devices
	UsedBytes   *int         `json:"used_bytes"`          // that they use now; null where it is not counted
	PeakMiB     int          `json:"peak_mib"`            // on the device with the most, MiB
	OutOfMemory int          `json:"out_of_memory"`       // requests for more than was free
	Processes   []TopProcess `json:"processes"`           // that use its GPU
}

// TopProcess is a process that uses the GPU of a session.
type TopProcess struct {
	PID       int    `json:"pid"`        // on its host
	Name      string `json:"name"`       // as the driver reports it
	MemoryMiB int    `json:"memory_mib"` // MiB
}
