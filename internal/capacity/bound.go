package capacity

import (
	"maps"
	"slices"

	"cosplay/internal/resource"
)

// Bound is a time that a step cannot take less than: a bound, and no forecast.
type Bound struct {
	Seconds float64
	By      string // what it is of: "FP32", "FP16", ..., or "PCIe" for copies from the host
}

// LeastTime is the bound of some work on a GPU: of its floating point operations by number format, at the rates that the maker states, and of
// bytes that are copied to it. Parts of a GPU that work at the same time do not add up.
func LeastTime(operations map[string]float64, toDevice int, t resource.Target) Bound {
	bound := Bound{Seconds: float64(toDevice) / pcieRate(t), By: "PCIe"}
	for _, format := range slices.Sorted(maps.Keys(operations)) {
		label, rate := rateOf(format, t)
		if rate == 0 {
			continue // nothing is known about it
		}
		if seconds := operations[format] / (rate * 1e12); seconds > bound.Seconds {
			bound = Bound{seconds, label}
		}
	}
	return bound
}

// rateOf is the highest rate of a GPU in a number format, in 10^12 operations/s; 0 if unknown. GPUs without tensor cores multiply two FP16
// numbers at once and four of INT8, and compute in FP32 what they have no format for. FP64 never exceeds FP32.
func rateOf(format string, t resource.Target) (label string, rate float64) {
	switch format {
	case "fp32":
		return "FP32", t.FP32TFLOPS
	case "fp64":
		return "FP64", t.FP32TFLOPS
	case "tf32":
		if slices.Contains(t.TensorTypes, "tf32") {
			return "TF32", max(t.FP32TFLOPS, t.TensorFP16TFLOPS/2)
		}
		return "FP32", t.FP32TFLOPS
	case "fp16":
		return "FP16", max(2*t.FP32TFLOPS, t.TensorFP16TFLOPS)
	case "bf16":
		return "BF16", max(t.FP32TFLOPS, t.TensorBF16TFLOPS)
	case "int8":
		return "INT8", max(4*t.FP32TFLOPS, t.TensorINT8TOPS)
	case "fp8":
		return "FP8", t.TensorFP8TFLOPS
	}
	return "", 0
}

// pcieRate is that of 16 lanes in one direction, in bytes/s, before the cost of packets.
func pcieRate(t resource.Target) float64 {
	generations := []float64{4e9, 4e9, 8e9, 15.75e9, 31.5e9, 63e9, 121e9}
	return generations[min(max(0, t.PCIeGeneration), len(generations)-1)]
}
