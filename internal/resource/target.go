package resource

import (
	"fmt"
	"math"
	"slices"
)

// Target is a GPU that a session presents: an entry of the catalog.
type Target struct {
	Key               string   `json:"key"`  // "rtx-2060"
	Name              string   `json:"name"` // as NVML prints it: "NVIDIA GeForce RTX 2060"
	Aliases           []string `json:"aliases,omitempty"`
	Architecture      string   `json:"architecture"`       // "turing"
	ComputeCapability string   `json:"compute_capability"` // "7.5"
	SMs               int      `json:"sms"`
	BoostMHz          int      `json:"boost_mhz"`
	MemoryMiB         int      `json:"memory_mib"`
	BusBits           int      `json:"bus_bits"`
	BandwidthGBs      float64  `json:"bandwidth_gbs"`
	L2MiB             float64  `json:"l2_mib"`
	PowerW            int      `json:"power_w"` // of the whole board
	PCIeGeneration    int      `json:"pcie_generation"`
	Year              int      `json:"year"`

	FP32TFLOPS       float64  `json:"fp32_tflops"`
	TensorFP16TFLOPS float64  `json:"tensor_fp16_tflops"` // dense, FP32 accumulate; 0 where there is none
	TensorBF16TFLOPS float64  `json:"tensor_bf16_tflops"`
	TensorFP8TFLOPS  float64  `json:"tensor_fp8_tflops"`
	TensorINT8TOPS   float64  `json:"tensor_int8_tops"`
	TensorTypes      []string `json:"tensor_types,omitempty"`
	Source           string   `json:"source"` // of these figures

	Fraction float64 `json:"fraction,omitempty"` // the part of the card that the figures are of; 0 for all of it
}

// ShortName is the name without the maker's: "RTX 2060", "0.33 of L40S".
func (t Target) ShortName() string {
	if t.Fraction > 0 && t.Fraction < 1 {
		return fmt.Sprintf("%g of %s", t.Fraction, shortName(t.Name))
	}
	return shortName(t.Name)
}

// Part is a fraction of a card: of its memory, and of its SMs and rates where they are divided, too.
func (t Target) Part(fraction float64, memoryMiB int, rates bool) Target {
	t.Fraction, t.MemoryMiB = fraction, int(fraction*float64(memoryMiB))
	if !rates {
		return t
	}
	t.SMs, t.PowerW = max(1, int(math.Round(fraction*float64(t.SMs)))), max(1, int(math.Round(fraction*float64(t.PowerW))))
	for _, rate := range []*float64{&t.BandwidthGBs, &t.FP32TFLOPS, &t.TensorFP16TFLOPS, &t.TensorBF16TFLOPS, &t.TensorFP8TFLOPS, &t.TensorINT8TOPS} {
		*rate *= fraction
	}
	return t
}

// newFormats are the number formats that came with a later generation of tensor
// cores, so that a GPU without those has them nowhere.
var newFormats = []string{"bf16", "tf32", "fp8", "fp6", "fp4"}

// Lacks lists the number formats that some GPUs have and the target does not, as
// TensorTypes names them. Formats that any core can compute in are never missing.
func (t Target) Lacks() []string {
	return slices.DeleteFunc(slices.Clone(newFormats), func(f string) bool { return slices.Contains(t.TensorTypes, f) })
}

// Envelope is the throughput of a GPU or of a slice of one.
type Envelope struct {
	SMs          int     `json:"sms"`
	FP32TFLOPS   float64 `json:"fp32_tflops"`
	TensorTFLOPS float64 `json:"tensor_tflops"` // dense FP16, FP32 accumulate; 0 where there is none
	BandwidthGBs float64 `json:"bandwidth_gbs"`
	MemoryMiB    int     `json:"memory_mib"`
}

// Envelope gives the target's figures in the form that a fit is compared in.
func (t Target) Envelope() Envelope {
	return Envelope{
		SMs:          t.SMs,
		FP32TFLOPS:   t.FP32TFLOPS,
		TensorTFLOPS: t.TensorFP16TFLOPS,
		BandwidthGBs: t.BandwidthGBs,
		MemoryMiB:    t.MemoryMiB,
	}
}

// Preference says which figure a fit honours first.
type Preference string

const (
	PreferFP32      Preference = "fp32"
	PreferBandwidth Preference = "bandwidth"
	PreferBalanced  Preference = "balanced"
)

// FitOptions are the wishes of a session's fit block. Errors are ratios:
// 0.1 is 10 %.
type FitOptions struct {
	Prefer    Preference `json:"prefer"`
	Tolerance float64    `json:"tolerance"`           // take the smallest slice within it; 0 asks for the least error
	MaxError  *float64   `json:"max_error,omitempty"` // a worse fit is refused
}

// DefaultFit is the fit of a session without a fit block.
func DefaultFit() FitOptions { return FitOptions{Prefer: PreferFP32, Tolerance: 0.10} }
