// Package catalog contains the GPUs that a session can present (targets) and the GPUs that cosplay can use (hosts).
// The values are in HCL files beside this one, one for each generation, so that people can read and correct them;
// each entry names its source.
//
// Functions return shared data: callers must not modify the slices.
package catalog

import (
	"cmp"
	"embed"
	"slices"
	"strings"
	"sync"

	"cosplay/internal/resource"
)

//go:embed *.hcl
var files embed.FS

// generations are the architectures, in order of their years.
var generations = []string{"maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"}

var (
	targets = sync.OnceValue(func() *table[resource.Target] { return load("target", decodeTarget) })
	hosts   = sync.OnceValue(func() *table[Host] { return load("host", decodeHost) })
)

// Host is a GPU that cosplay can use: the values that NVML would report, for work without the hardware, and values
// that NVML does not report.
type Host struct {
	Key     string // "h200"
	Aliases []string
	Model   resource.Model
	Source  string // source of these values
	Unsure  string // which values are doubtful, and why; "" if none are
}

// Targets lists all targets by generation, then FP32 rate, then memory.
func Targets() []resource.Target {
	all := targets().all()
	slices.SortFunc(all, func(a, b resource.Target) int {
		return cmp.Or(
			slices.Index(generations, a.Architecture)-slices.Index(generations, b.Architecture),
			cmp.Compare(a.FP32TFLOPS, b.FP32TFLOPS),
			cmp.Compare(a.MemoryMiB, b.MemoryMiB),
			strings.Compare(a.Key, b.Key),
		)
	})
	return all
}

// Target finds a target by any common spelling: "2060", "RTX_2060", "NVIDIA GeForce RTX 2060", "2060 12GB". The error
// is an *UnknownError.
func Target(typed string) (resource.Target, error) { return targets().find(typed) }

// Hosts lists all hosts, by generation.
func Hosts() []Host { return hosts().all() }

// HostModel finds the model of a host by any common spelling: "h200", "NVIDIA H200", "A100 80GB". The error is an
// *UnknownError.
func HostModel(typed string) (resource.Model, error) {
	h, err := hosts().find(typed)
	return h.Model, err
}

// CheckHost reports whether the catalog has a host by that name, as HostModel does, and reads no values.
func CheckHost(typed string) error {
	if _, ok := hosts().forms[plain(typed)]; ok {
		return nil
	}
	return hosts().unknown(typed)
}

// Product finds a host by its name in NVML: "NVIDIA H200". The entry has the GPU instance profiles, which the driver
// may hide while MIG is off.
func Product(name string) (Host, bool) {
	for _, e := range hosts().entries {
		if e.name == name {
			return e.value(), true
		}
	}
	return Host{}, false
}

// Complete adds to a model the values that NVML does not report: bandwidth, L2 and the rates of an SM. It reports
// whether the catalog has the product. For another product it computes the rates from the compute capability.
func Complete(m resource.Model) (resource.Model, bool) {
	h, known := Product(m.Name)
	if !known {
		m.FP32PerSM, m.TensorPerSM = ratesPerSM(m.Name, m.ComputeCapability)
		return m, false
	}
	m.BandwidthGBs, m.L2MiB = h.Model.BandwidthGBs, h.Model.L2MiB
	m.FP32PerSM, m.TensorPerSM = h.Model.FP32PerSM, h.Model.TensorPerSM
	return m, true
}
