package catalog

import (
	"math"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// precision is the largest difference between a published figure and SMs x clock x the rate of an SM.
const precision = 0.03

// figures are the rates of an SM in operations per clock, an FMA as two, or those of a GPU in TFLOPS and TOPS. Tensor
// rates are dense, with FP32 accumulation.
type figures struct{ fp32, fp16, bf16, fp8, int8 float64 }

// architectures has the published rates of an SM; the first row that matches is a card's. The table repeats none of
// rates.go, so that each checks the other.
var architectures = []struct {
	capability, cards string // cards with this in their name; "" means all others
	figures
}{
	{"5.0", "", figures{fp32: 256}},
	{"5.2", "", figures{fp32: 256}},
	{"6.0", "", figures{fp32: 128}},
	{"6.1", "Tesla", figures{fp32: 256, int8: 1024}}, // DP4A, without tensor cores; not published for others
	{"6.1", "", figures{fp32: 256}},
	{"7.0", "", figures{fp32: 128, fp16: 1024}},
	{"7.5", "GTX", figures{fp32: 128}},
	{"7.5", "GeForce", figures{fp32: 128, fp16: 512, int8: 2048}},
	{"7.5", "", figures{fp32: 128, fp16: 1024, int8: 2048}},
	{"8.0", "", figures{fp32: 128, fp16: 2048, bf16: 2048, int8: 4096}},
	{"8.6", "GeForce", figures{fp32: 256, fp16: 512, bf16: 512, int8: 2048}},
	{"8.6", "A10G", figures{fp32: 256, fp16: 512, bf16: 512, int8: 1024}},
	{"8.6", "", figures{fp32: 256, fp16: 1024, bf16: 1024, int8: 2048}},
	{"8.9", "GeForce", figures{fp32: 256, fp16: 512, bf16: 512, fp8: 1024, int8: 2048}},
	{"8.9", "L40S", figures{fp32: 256, fp16: 1024, bf16: 1024, fp8: 2048, int8: 2048}},
	{"8.9", "L40", figures{fp32: 256, fp16: 512, bf16: 512, fp8: 1024, int8: 1024}},
	{"8.9", "L20", figures{fp32: 256, fp16: 512, bf16: 512, fp8: 1024, int8: 1024}},
	{"8.9", "", figures{fp32: 256, fp16: 1024, bf16: 1024, fp8: 2048, int8: 2048}},
	{"9.0", "H20 ", figures{fp32: 256, fp16: 960, bf16: 960, fp8: 1920, int8: 1920}}, // capped for export
	{"9.0", "", figures{fp32: 256, fp16: 4096, bf16: 4096, fp8: 8192, int8: 8192}},
	{"10.0", "", figures{fp32: 256, fp16: 8192, bf16: 8192, fp8: 16384, int8: 16384}},
	{"10.3", "", figures{fp32: 256, fp16: 8192, bf16: 8192, fp8: 16384, int8: 16384}},
	{"12.0", "GeForce", figures{fp32: 256, fp16: 512, bf16: 512, fp8: 1024, int8: 2048}},
	{"12.0", "", figures{fp32: 256, fp16: 1024, bf16: 1024, fp8: 2048, int8: 2048}},
}

// exception is a figure that is not SMs x boost clock x rate.
type exception struct {
	cards  string  // their keys
	figure string  // "FP32", "FP16", ..., or "tensor" for all but FP32; the first that matches counts
	atMHz  int     // the clock that the figure is quoted at; 0 if it is not a matter of the clock
	ratio  float64 // of the published figure to the computed one, where atMHz is 0; 0 if no figure is published
	source string
}

const powerLimited = "NVIDIA's datasheet: its tensor rates are for the clock that the power limit allows, its FP32 rate is for the boost clock"

var exceptions = []exception{
	{"h100 h800 h200 gh200 gh200-144gb", "tensor", 1830, 0, powerLimited},
	{"h100-pcie", "tensor", 1620, 0, powerLimited},
	{"h100-nvl h200-nvl", "tensor", 1545, 0, powerLimited},
	{"b300", "INT8", 0, 0.0304, "NVIDIA's datasheet prints 150 TOPS: Blackwell Ultra has few INT8 units"},
	{"b200 b300", "tensor", 1856, 0, powerLimited},
	{"h20", "FP32", 0, 1.113, "NVIDIA's datasheet prints 44 TFLOPS; the 78 SMs come from a third party"},
	{"b100", "FP32", 0, 0.865, "NVIDIA's datasheet prints 60 TFLOPS; its clock and SMs were not published, those here are guesses"},
	{"b100", "tensor", 0, 0.789, "NVIDIA's datasheet prints 1750 TFLOPS; clock and SMs are guesses"},
	{"rtx-5090-d", "tensor", 0, 0, "NVIDIA publishes 2375 AI TOPS and no dense rate"},
}

// exceptionOf returns the exception for a figure of a card.
func exceptionOf(key, figure string) (exception, bool) {
	i := slices.IndexFunc(exceptions, func(e exception) bool {
		return slices.Contains(strings.Fields(e.cards), key) && (e.figure == figure || e.figure == "tensor" && figure != "FP32")
	})
	if i < 0 {
		return exception{}, false
	}
	return exceptions[i], true
}

// ratesOf finds a card's row among the architectures.
func ratesOf(t *testing.T, name, capability string) figures {
	t.Helper()
	for _, a := range architectures {
		if a.capability == capability && strings.Contains(name+" ", a.cards) {
			return a.figures
		}
	}
	t.Errorf("%s: no rates for compute capability %s", name, capability)
	return figures{}
}

func differ(published, computed float64) bool {
	if published == 0 || computed == 0 {
		return published != computed
	}
	return math.Abs(published/computed-1) > precision
}

// checkFigure compares a published figure, in TFLOPS or TOPS, with SMs x clock x rate.
func checkFigure(t *testing.T, card resource.Target, figure string, published, rate float64) {
	t.Helper()
	computed := float64(card.SMs) * float64(card.BoostMHz) * rate / 1e6
	e, excepted := exceptionOf(card.Key, figure)
	if !excepted {
		if differ(published, computed) {
			t.Errorf("%s: %s is %g, and %d SMs at %d MHz give %.2f: correct it, or list the exception with its source", card.Key, figure, published, card.SMs, card.BoostMHz, computed)
		}
		return
	}
	explained := computed * e.ratio
	if e.atMHz > 0 {
		explained = computed * float64(e.atMHz) / float64(card.BoostMHz)
	}
	if differ(published, explained) || !differ(published, computed) {
		t.Errorf("%s: %s is %g, with its exception %.2f, and without %.2f (%s)", card.Key, figure, published, explained, computed, e.source)
	}
}

// Every rate of a target follows from its SMs, its boost clock and the published rates of an SM.
func TestFiguresOfTargets(t *testing.T) {
	keys := map[string]bool{}
	for _, card := range Targets() {
		keys[card.Key] = true
		sm := ratesOf(t, card.Name, card.ComputeCapability)
		checkFigure(t, card, "FP32", card.FP32TFLOPS, sm.fp32)
		checkFigure(t, card, "FP16", card.TensorFP16TFLOPS, sm.fp16)
		checkFigure(t, card, "BF16", card.TensorBF16TFLOPS, sm.bf16)
		checkFigure(t, card, "FP8", card.TensorFP8TFLOPS, sm.fp8)
		checkFigure(t, card, "INT8", card.TensorINT8TOPS, sm.int8)
	}
	for _, e := range exceptions {
		for _, key := range strings.Fields(e.cards) {
			if !keys[key] || e.source == "" {
				t.Errorf("%s: the exception for %s has no source, or the catalog has no such card", key, e.figure)
			}
		}
	}
}

// Every host has the SMs and rates of the target with its name, so that a whole GPU presents itself with its own
// figures.
func TestFiguresOfHosts(t *testing.T) {
	for _, h := range Hosts() {
		m := h.Model
		sm := ratesOf(t, m.Name, m.ComputeCapability)
		if m.FP32PerSM != sm.fp32 || m.TensorPerSM != sm.fp16 {
			t.Errorf("%s: %g FP32 and %g tensor operations per clock and SM, want %g and %g", h.Key, m.FP32PerSM, m.TensorPerSM, sm.fp32, sm.fp16)
		}
		card, err := Target(m.Name)
		if err != nil {
			t.Errorf("%s: no target has its figures: %v", h.Key, err)
			continue
		}
		if m.SMs != card.SMs || m.ComputeCapability != card.ComputeCapability || m.L2MiB != card.L2MiB {
			t.Errorf("%s: %d SMs, %s, %g MiB L2; the target %s has %d, %s, %g", h.Key, m.SMs, m.ComputeCapability, m.L2MiB, card.Key, card.SMs, card.ComputeCapability, card.L2MiB)
		}
		if differ(m.BandwidthGBs, card.BandwidthGBs) {
			t.Errorf("%s: %g GB/s, the target %s has %g", h.Key, m.BandwidthGBs, card.Key, card.BandwidthGBs)
		}
		if highest := m.ClocksMHz[len(m.ClocksMHz)-1]; highest < card.BoostMHz {
			t.Errorf("%s: at most %d MHz, the target %s has %d", h.Key, highest, card.Key, card.BoostMHz)
		}
	}
}
