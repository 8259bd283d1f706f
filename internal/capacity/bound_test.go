package capacity

import (
	"math"
	"testing"

	"cosplay/catalog"
)

// TestLeastTime compares bounds with figures by hand, from the rates of NVIDIA's data sheets.
func TestLeastTime(t *testing.T) {
	for _, c := range []struct {
		target     string
		operations map[string]float64
		toDevice   int
		seconds    float64
		by         string
	}{
		{"2060", map[string]float64{"fp32": 6.45e12}, 0, 1, "FP32"},
		{"2060", map[string]float64{"fp16": 25.8e12, "fp32": 1e12}, 0, 1, "FP16"},
		{"2060", map[string]float64{"tf32": 6.45e12}, 0, 1, "FP32"}, // Turing has no TF32
		{"a100", map[string]float64{"tf32": 156e12}, 0, 1, "TF32"},
		{"a100", map[string]float64{"bf16": 312e12}, 0, 1, "BF16"},
		{"1080 ti", map[string]float64{"fp16": 22.7e12}, 0, 1, "FP16"},
		{"3090", map[string]float64{"fp32": 1e9}, 31_500_000_000, 1, "PCIe"},
		{"2060", map[string]float64{"other": 1e30}, 0, 0, "PCIe"},
	} {
		target, err := catalog.Target(c.target)
		if err != nil {
			t.Fatal(err)
		}
		got := LeastTime(c.operations, c.toDevice, target)
		if math.Abs(got.Seconds-c.seconds) > 0.01*max(c.seconds, 1e-6) || got.By != c.by {
			t.Errorf("%s %v: %+v, want %v s by %s", c.target, c.operations, got, c.seconds, c.by)
		}
	}
}
