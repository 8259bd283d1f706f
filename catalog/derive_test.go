package catalog

import (
	"slices"
	"testing"

	"cosplay/internal/resource"
)

// Derive gives the cards of the catalog their own figures back, except for those that the catalog lists as exceptions.
func TestDeriveAgreesWithTheCatalog(t *testing.T) {
	for _, card := range Targets() {
		got, known := Derive(resource.Target{Name: card.Name, SMs: card.SMs, BoostMHz: card.BoostMHz, ComputeCapability: card.ComputeCapability})
		if !known || got.Architecture != card.Architecture {
			t.Errorf("%s: %v, %q", card.Key, known, got.Architecture)
		}
		for _, f := range []struct {
			name          string
			derived, have float64
		}{
			{"FP32", got.FP32TFLOPS, card.FP32TFLOPS},
			{"FP16", got.TensorFP16TFLOPS, card.TensorFP16TFLOPS},
			{"BF16", got.TensorBF16TFLOPS, card.TensorBF16TFLOPS},
			{"FP8", got.TensorFP8TFLOPS, card.TensorFP8TFLOPS},
			{"INT8", got.TensorINT8TOPS, card.TensorINT8TOPS},
		} {
			_, excepted := exceptionOf(card.Key, f.name)
			cuda := f.name == "INT8" && len(card.TensorTypes) == 0 // of the CUDA cores, by DP4A
			if differ(f.derived, f.have) && !excepted && !cuda {
				t.Errorf("%s: %s is derived as %.2f, the catalog has %g", card.Key, f.name, f.derived, f.have)
			}
		}
		if !slices.Equal(got.TensorTypes, card.TensorTypes) {
			t.Errorf("%s: tensor types %v, the catalog has %v", card.Key, got.TensorTypes, card.TensorTypes)
		}
		if got.Year > card.Year {
			t.Errorf("%s: of %d, and its architecture of %d", card.Key, card.Year, got.Year)
		}
	}
	if _, known := Derive(resource.Target{ComputeCapability: "8.5"}); known {
		t.Error("8.5 is known")
	}
	if len(Capabilities()) != len(capabilities) {
		t.Error("Capabilities lacks some")
	}
}
