package catalog

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// Listed reports whether the catalog has a GPU, by its name in NVML.
func Listed(m resource.Model) bool {
	_, listed := Product(m.Name)
	return listed
}

// Unlisted describes the figures of a GPU that the catalog lacks: what NVML reports, what follows from it, and what
// is unknown. It is one sentence a line.
func Unlisted(g resource.GPU) string {
	m := g.Model
	reported := []string{fmt.Sprintf("%d SMs", m.SMs), fmt.Sprintf("%d MiB", m.MemoryMiB)}
	if m.BandwidthGBs > 0 {
		reported = append(reported, fmt.Sprintf("%g GB/s", m.BandwidthGBs))
	}
	if n := len(m.ClocksMHz); n > 0 {
		reported = append(reported, fmt.Sprintf("SM clocks from %d to %d MHz", m.ClocksMHz[0], m.ClocksMHz[n-1]))
	}
	lines := []string{fmt.Sprintf("Its figures are those that NVML reports: %s.", strings.Join(reported, ", "))}
	if slices.Contains(Capabilities(), m.ComputeCapability) {
		lines = append(lines, fmt.Sprintf("Its rates are those of compute capability %s: %g FP32 and %g tensor operations per SM and clock.", m.ComputeCapability, m.FP32PerSM, m.TensorPerSM))
	} else {
		lines = append(lines, fmt.Sprintf("cosplay does not know compute capability %q: it assumes %g FP32 operations per SM and clock, and its tensor rate is unknown.", m.ComputeCapability, m.FP32PerSM))
	}
	unknown := "The size of its L2 cache is unknown."
	if m.BandwidthGBs == 0 {
		unknown = "The size of its L2 cache and its bandwidth are unknown, so that no slice matches a bandwidth."
	}
	lines = append(lines, unknown)
	if g.MIGCapable && !m.MIG() {
		lines = append(lines, fmt.Sprintf("The driver lists no MIG profiles while MIG mode is off, so sessions get the whole GPU. For slices, run nvidia-smi -i %d -mig 1 and plan again.", g.Index))
	}
	return strings.Join(lines, "\n")
}
