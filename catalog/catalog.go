// Package catalog knows the GPUs to pass for (targets) and the GPUs to run on
// (hosts). The figures are HCL files beside this one, one a generation, for
// people to read and to correct; each entry names its source.
//
// What the functions return is shared: its slices are not to be written to.
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

// generations are the architectures in the order of their years.
var generations = []string{"pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"}

var (
	targets = sync.OnceValue(func() *table[resource.Target] { return load("target", decodeTarget) })
	hosts   = sync.OnceValue(func() *table[Host] { return load("host", decodeHost) })
)

// Host is a GPU to run on: what NVML would tell of it, for work without the
// hardware, and what NVML does not tell.
type Host struct {
	Key     string // "h200"
	Aliases []string
	Model   resource.Model
	Source  string // of these figures
	Unsure  string // which of them are in doubt, and why; "" if none are
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

// Target finds a target as people type it: "2060", "RTX_2060", "NVIDIA GeForce
// RTX 2060", "2060 12GB". The error is an *UnknownError.
func Target(typed string) (resource.Target, error) {
	e, err := targets().find(typed)
	if err != nil {
		return resource.Target{}, err
	}
	return e.value(), nil
}

// Hosts lists all hosts, by generation.
func Hosts() []Host { return hosts().all() }

// HostModel finds the model of a host as people type it: "h200", "NVIDIA
// H200", "A100 80GB". The error is an *UnknownError.
func HostModel(typed string) (resource.Model, error) {
	e, err := hosts().find(typed)
	if err != nil {
		return resource.Model{}, err
	}
	return e.value().Model, nil
}

// Product finds a host by the name that NVML gives it: "NVIDIA H200". It has the
// GPU instance profiles that the driver may hide while MIG is off.
func Product(name string) (Host, bool) {
	for _, e := range hosts().entries {
		if e.name == name {
			return e.value(), true
		}
	}
	return Host{}, false
}

// Complete adds to a model what NVML does not tell: bandwidth, L2 and the rates
// of an SM. For a product of the catalog these are the catalog's; for another
// the rates follow from its compute capability, and it reports false.
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
