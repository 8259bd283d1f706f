package catalog

import (
	"slices"

	"cosplay/internal/resource"
)

// capability is what GPUs of a compute capability have in common.
type capability struct {
	version      string
	architecture string
	year         int // in which the architecture appeared
	tensorTypes  []string
}

var (
	turingTypes = []string{"fp16", "int8", "int4"}
	ampereTypes = []string{"fp16", "bf16", "tf32", "int8", "int4"}
	adaTypes    = []string{"fp16", "bf16", "tf32", "fp8", "int8", "int4"}

	capabilities = []capability{
		{"5.0", "maxwell", 2014, nil},
		{"5.2", "maxwell", 2014, nil},
		{"6.0", "pascal", 2016, nil},
		{"6.1", "pascal", 2016, nil},
		{"7.0", "volta", 2017, []string{"fp16"}},
		{"7.5", "turing", 2018, turingTypes},
		{"8.0", "ampere", 2020, append(ampereTypes[:5:5], "fp64")},
		{"8.6", "ampere", 2020, ampereTypes},
		{"8.9", "ada", 2022, adaTypes},
		{"9.0", "hopper", 2022, []string{"fp16", "bf16", "tf32", "fp8", "int8", "fp64"}},
		{"10.0", "blackwell", 2024, []string{"fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8", "fp64"}},
		{"10.3", "blackwell", 2024, []string{"fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"}},
		{"12.0", "blackwell", 2024, []string{"fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"}},
	}
)

// Capabilities lists the compute capabilities that the catalog knows, in ascending order.
func Capabilities() []string {
	versions := make([]string, len(capabilities))
	for i, c := range capabilities {
		versions[i] = c.version
	}
	return versions
}

// Derive adds to a target what follows from its name, SMs, clock and compute capability: architecture, the year of the
// architecture, all rates, and the number formats of the tensor cores. It reports whether the catalog knows the
// compute capability.
func Derive(t resource.Target) (resource.Target, bool) {
	i := slices.IndexFunc(capabilities, func(c capability) bool { return c.version == t.ComputeCapability })
	if i < 0 {
		return t, false
	}
	c := capabilities[i]
	t.Architecture, t.Year = c.architecture, c.year
	fp32, tensor := ratesPerSM(t.Name, t.ComputeCapability)
	teraclocks := float64(t.SMs) * float64(t.BoostMHz) / 1e6 // clocks of all SMs per second, in 10^12
	t.FP32TFLOPS, t.TensorFP16TFLOPS = teraclocks*fp32, teraclocks*tensor
	if tensor == 0 {
		return t, true
	}
	t.TensorTypes = c.tensorTypes
	if slices.Contains(c.tensorTypes, "bf16") {
		t.TensorBF16TFLOPS = t.TensorFP16TFLOPS
	}
	if slices.Contains(c.tensorTypes, "fp8") {
		t.TensorFP8TFLOPS = 2 * t.TensorFP16TFLOPS
	}
	if slices.Contains(c.tensorTypes, "int8") {
		t.TensorINT8TOPS = teraclocks * int8PerSM(t.Name, t.ComputeCapability, tensor)
	}
	return t, true
}
