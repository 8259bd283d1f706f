package fit_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// If one figure is the same at many clocks, the other figure decides, and then the higher clock.
func TestEqualClocks(t *testing.T) {
	m := host(t, "h200")
	gpu := target(t, "rtx-3090")
	gpu.BandwidthGBs = 600 // the maximum of 1g.18gb, from 1250 MHz on
	f := inProfile(t, m, gpu, "1g.18gb", resource.PreferBandwidth)
	if f.ClockMHz != 1980 {
		t.Errorf("FP32 is too low at any clock, so take the highest; took %d MHz", f.ClockMHz)
	}
	gpu.FP32TFLOPS = 0.001
	f = inProfile(t, m, gpu, "1g.18gb", resource.PreferBandwidth)
	if f.ClockMHz != 1260 {
		t.Errorf("FP32 is too high at any clock, so take the lowest that gives the bandwidth; took %d MHz", f.ClockMHz)
	}
}

// Two clocks can miss the target by the same factor, one above it and one below it.
func TestEquallyWrongClocks(t *testing.T) {
	m, gpu := host(t, "h200"), target(t, "rtx-2060")
	gpu.BandwidthGBs = 600
	gpu.FP32TFLOPS = fit.At(m, gpu, "1g.18gb", 1).Got.FP32TFLOPS * math.Sqrt(1350*1950)
	m.ClocksMHz = []int{1350, 1950}
	for _, prefer := range preferences {
		if f := inProfile(t, m, gpu, "1g.18gb", prefer); f.ClockMHz != 1950 {
			t.Errorf("%s: took %d MHz, want the higher of two equals", prefer, f.ClockMHz)
		}
	}
}

// Without a tolerance, the other figure takes precedence over the slice's size, even if the first error is zero.
func TestNoToleranceIsNotATolerance(t *testing.T) {
	m, gpu := host(t, "h200"), target(t, "rtx-3090")
	gpu.BandwidthGBs = 1200 // the bandwidth of both 1g.35gb and 2g.35gb
	for tolerance, want := range map[float64]string{0: "2g.35gb", 0.01: "1g.35gb"} {
		f, err := fit.Best(m, gpu, resource.FitOptions{Prefer: resource.PreferBandwidth, Tolerance: tolerance})
		if err != nil || f.Profile != want || f.BandwidthRatio() != 1 {
			t.Errorf("tolerance %g: %+v, %v; want %s", tolerance, f, err, want)
		}
	}
}

// Best never chooses a profile that differs from another in media engines only.
func TestOnlyPlainProfiles(t *testing.T) {
	for _, h := range catalog.Hosts() {
		plain := 0
		for _, p := range h.Model.Profiles {
			if !strings.ContainsAny(p.Name, "+-") {
				plain++
			}
		}
		gpu := target(t, "rtx-2060")
		gpu.MemoryMiB = 1
		found := fit.Candidates(h.Model, gpu, resource.DefaultFit())
		if len(found) != plain+1 {
			t.Errorf("%s: %d candidates for %d plain profiles and the whole GPU", h.Key, len(found), plain)
		}
		for _, f := range found {
			if strings.ContainsAny(f.Profile, "+-") {
				t.Errorf("%s: %s is a candidate", h.Key, f.Profile)
			}
		}
	}
}

func TestFewClocks(t *testing.T) {
	m, gpu := host(t, "h200"), target(t, "rtx-2060")
	m.ClocksMHz = []int{600, 1200, 1500, 1800}
	if f := inProfile(t, m, gpu, "1g.18gb", resource.PreferFP32); f != fit.At(m, gpu, "1g.18gb", 1500) {
		t.Errorf("of four clocks: %+v", f)
	}
	m.ClocksMHz = []int{1050}
	if best := fit.Candidates(m, gpu, resource.DefaultFit())[0]; best.ClockMHz != 1050 || best.Profile != "1g.35gb" {
		t.Errorf("at 1050 MHz an RTX 2060 wants 24 SMs and gets %+v", best)
	}
	m.ClocksMHz = nil
	if got := fit.Candidates(m, gpu, resource.DefaultFit()); got != nil {
		t.Errorf("without a clock: %+v", got)
	}
}

// inProfile returns the candidate of one profile, at its best clock.
func inProfile(t *testing.T, m resource.Model, gpu resource.Target, profile string, prefer resource.Preference) resource.Fit {
	t.Helper()
	gpu.MemoryMiB = min(gpu.MemoryMiB, fit.At(m, gpu, profile, m.MaxClockMHz()).Got.MemoryMiB)
	all := fit.Candidates(m, gpu, resource.FitOptions{Prefer: prefer})
	i := slices.IndexFunc(all, func(f resource.Fit) bool { return f.Profile == profile })
	if i < 0 {
		t.Fatalf("%s is no candidate", profile)
	}
	return all[i]
}
