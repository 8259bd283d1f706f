package public

// HostExport is what host export writes: the GPUs of a host, for simulate in a host block and for --on. The file has its
// own format_version.
type HostExport struct {
	Format
	Kind     string        `json:"kind"`               // always host
	Cosplay  string        `json:"cosplay_version"`    // version of cosplay that wrote it
	Checksum string        `json:"checksum"`           // sha256: and the SHA-256 of all bytes of the file, with this field empty
	Driver   string        `json:"driver"`             // version of NVIDIA's driver; unknown if it does not report it
	GPUs     []ExportedGPU `json:"gpus"`               // that answer, by index
	Unusable []Unusable    `json:"unusable,omitempty"` // GPUs that do not answer
}

// ExportedGPU is a GPU of an exported host.
type ExportedGPU struct {
	Index          int             `json:"index"`               // number that the driver gives it, from 0
	UUID           string          `json:"uuid"`                // GPU-...
	PCI            string          `json:"pci"`                 // PCI address
	Model          Model           `json:"model"`               // what the GPU offers
	MIGCapable     bool            `json:"mig_capable"`         // MIG mode can be switched on
	MIG            bool            `json:"mig"`                 // MIG mode is on
	MIGPending     bool            `json:"mig_pending"`         // MIG mode is on after the next reset
	Persistence    bool            `json:"persistence"`         // persistence mode is on
	PowerMW        int             `json:"power_mw"`            // power limit, mW
	ComputeMode    string          `json:"compute_mode"`        // default, prohibited or exclusive process
	SMClockMHz     int             `json:"sm_clock_mhz"`        // SM clock at the time of the export, MHz; NVML cannot read a lock
	LowClockReason bool            `json:"low_clock_reason"`    // it was idle or throttled then
	Slices         []ExportedSlice `json:"slices,omitempty"`    // all MIG slices, also those of sessions
	Processes      []Process       `json:"processes,omitempty"` // that use the GPU, without names
	Degraded       []Degradation   `json:"degraded,omitempty"`  // what the driver does not offer on the GPU
}

// ExportedSlice is a MIG slice of an exported host.
type ExportedSlice struct {
	UUID            string `json:"uuid,omitempty"`          // of the MIG device; missing for a GPU instance without compute instance
	GPUInstance     int    `json:"gpu_instance"`            // ID on the GPU
	ComputeInstance int    `json:"compute_instance"`        // ID in the GPU instance
	Profile         string `json:"profile"`                 // 1g.18gb, or 1c.3g.40gb for a part of a GPU instance
	Start           int    `json:"start"`                   // first slot
	Size            int    `json:"size"`                    // number of slots
	ComputeStart    int    `json:"compute_start,omitempty"` // first compute slice in the GPU instance
}
