package fit_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

var (
	exact       = resource.FitOptions{Prefer: resource.PreferFP32}
	preferences = []resource.Preference{resource.PreferFP32, resource.PreferBandwidth, resource.PreferBalanced}
)

func host(t testing.TB, name string) resource.Model {
	t.Helper()
	m, err := catalog.HostModel(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func target(t testing.TB, name string) resource.Target {
	t.Helper()
	found, err := catalog.Target(name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The best fits that the hardware allows, with FP32 preferred and no tolerance.
func TestReachableFP32Error(t *testing.T) {
	want := []struct {
		host             string
		fitting, within5 int
		median, p90, max string
	}{
		{"h200", 118, 106, "0.002", "0.09", "0.62"},
		{"h100", 107, 98, "0.002", "0.01", "0.45"},
		{"a100-40gb", 96, 61, "0.004", "0.88", "1.68"},
		{"a100-80gb", 110, 65, "0.005", "1.21", "1.68"},
		{"a30", 89, 37, "0.244", "1.36", "2.08"},
	}
	t.Logf("%-10s %8s %9s %7s %6s %6s", "host", "fitting", "within 5%", "median", "p90", "worst")
	for _, w := range want {
		m := host(t, w.host)
		var reached []float64
		within5 := 0
		for _, gpu := range catalog.Targets() {
			f, err := fit.Best(m, gpu, exact)
			if err != nil {
				continue
			}
			e := f.Error(resource.PreferFP32)
			reached = append(reached, e)
			if e <= 0.05 {
				within5++
			}
		}
		slices.Sort(reached)
		n := len(reached)
		got := w
		got.fitting, got.within5 = n, within5
		got.median = fmt.Sprintf("%.3f", (reached[(n-1)/2]+reached[n/2])/2)
		got.p90 = fmt.Sprintf("%.2f", reached[n*9/10])
		got.max = fmt.Sprintf("%.2f", reached[n-1])
		t.Logf("%-10s %8d %9d %7s %6s %6s", got.host, got.fitting, got.within5, got.median, got.p90, got.max)
		if got != w {
			t.Errorf("%s: got %+v, want %+v", w.host, got, w)
		}
	}
}

func percentOff(ratio float64) string { return fmt.Sprintf("%+.1f", 100*(ratio-1)) }

func TestExamples(t *testing.T) {
	byDefault := resource.DefaultFit()
	bandwidth := resource.FitOptions{Prefer: resource.PreferBandwidth, Tolerance: 0.10}
	for _, c := range []struct {
		target, host string
		options      resource.FitOptions
		profile      string
		clock, sms   int
		fp32, bw     string // deviation from the target, in percent
		tensor       string
	}{
		{"rtx-2060", "h200", byDefault, "1g.18gb", 1575, 16, "+0.0", "+78.6", "4.0"},
		{"rtx-3090", "h200", byDefault, "4g.71gb", 1980, 64, "-8.8", "+156.4", "7.3"},
		{"rtx-3090", "h200", exact, "7g.141gb", 1050, 132, "-0.3", "+330.8", "8.0"},
		{"rtx-3090", "h200", bandwidth, "1g.35gb", 975, 26, "-81.8", "+0.0", "1.5"},
		{"h200", "h200", byDefault, "", 1980, 132, "+0.0", "+0.0", "1.0"},
		{"h100", "h200", byDefault, "7g.141gb", 1980, 132, "+0.0", "+43.2", "1.0"},
		{"rtx-3090", "a100-40gb", exact, "", 1410, 108, "-45.2", "+66.1", "4.4"},
		{"t4", "l4", byDefault, "", 540, 58, "-1.0", "-6.2", "0.5"},
	} {
		f, err := fit.Best(host(t, c.host), target(t, c.target), c.options)
		if err != nil {
			t.Errorf("%s on %s: %v", c.target, c.host, err)
			continue
		}
		got := fmt.Sprintf("%q %d MHz %d SMs FP32 %s bandwidth %s tensor x%.1f", f.Profile, f.ClockMHz, f.Got.SMs, percentOff(f.FP32Ratio()), percentOff(f.BandwidthRatio()), f.TensorRatio())
		want := fmt.Sprintf("%q %d MHz %d SMs FP32 %s bandwidth %s tensor x%s", c.profile, c.clock, c.sms, c.fp32, c.bw, c.tensor)
		if got != want {
			t.Errorf("%s on %s, %+v:\n got %s\nwant %s", c.target, c.host, c.options, got, want)
		}
	}
}

func TestThroughput(t *testing.T) {
	for _, c := range []struct {
		host, profile string
		clock         int
		want          resource.Envelope
	}{
		{"h200", "", 1980, resource.Envelope{SMs: 132, FP32TFLOPS: 66.91, TensorTFLOPS: 989.43, BandwidthGBs: 4800, MemoryMiB: 143771}},
		{"h200", "7g.141gb", 1980, resource.Envelope{SMs: 132, FP32TFLOPS: 66.91, TensorTFLOPS: 989.43, BandwidthGBs: 4800, MemoryMiB: 143104}},
		{"h200", "4g.71gb", 1980, resource.Envelope{SMs: 64, FP32TFLOPS: 32.44, TensorTFLOPS: 519.05, BandwidthGBs: 2400, MemoryMiB: 71168}},
		{"h200", "4g.71gb", 990, resource.Envelope{SMs: 64, FP32TFLOPS: 16.22, TensorTFLOPS: 259.52, BandwidthGBs: 1900.8, MemoryMiB: 71168}},
		{"a100-80gb", "3g.40gb", 1410, resource.Envelope{SMs: 42, FP32TFLOPS: 7.58, TensorTFLOPS: 121.28, BandwidthGBs: 1019.5, MemoryMiB: 40192}},
		{"a30", "1g.6gb", 300, resource.Envelope{SMs: 14, FP32TFLOPS: 0.54, TensorTFLOPS: 8.6, BandwidthGBs: 172.8, MemoryMiB: 5952}},
		{"t4", "", 300, resource.Envelope{SMs: 40, FP32TFLOPS: 1.54, TensorTFLOPS: 12.29, BandwidthGBs: 320, MemoryMiB: 15360}},
		{"h200", "9g.900gb", 1980, resource.Envelope{}},
	} {
		got := fit.At(host(t, c.host), resource.Target{}, c.profile, c.clock).Got
		for _, figure := range []*float64{&got.FP32TFLOPS, &got.TensorTFLOPS, &got.BandwidthGBs} {
			*figure = math.Round(*figure*100) / 100
		}
		if got != c.want {
			t.Errorf("%s %s at %d MHz:\n got %+v\nwant %+v", c.host, c.profile, c.clock, got, c.want)
		}
	}
}

// Best is the optimum: an independent search over every slice and clock finds nothing better by the rules.
func TestBestIsTheOptimum(t *testing.T) {
	tolerances := []float64{0, 0.10, 0.30}
	checked := 0
	for _, h := range catalog.Hosts() {
		for _, gpu := range catalog.Targets() {
			for _, prefer := range preferences {
				slices := reachable(h.Model, gpu, prefer)
				for _, tolerance := range tolerances {
					o := resource.FitOptions{Prefer: prefer, Tolerance: tolerance}
					best, err := fit.Best(h.Model, gpu, o)
					if (err != nil) != (len(slices) == 0) {
						t.Fatalf("%s on %s: %d slices, %v", gpu.Key, h.Key, len(slices), err)
					}
					if err == nil {
						checked++
						checkOptimum(t, h.Key, gpu.Key, o, best, slices)
					}
				}
			}
		}
	}
	if checked < 10_000 {
		t.Errorf("only %d fits checked", checked)
	}
}

// reach is the smallest error that a slice can have, with the slice's rank by size.
type reach struct {
	profile string
	size    int
	err     float64
	instead float64 // of a compute instance smaller than its GPU instance: the smallest error of all other slices
}

// reachable computes each reach with At alone, independently of the search under test.
func reachable(m resource.Model, gpu resource.Target, prefer resource.Preference) []reach {
	var found []reach
	try := func(profile string, memoryMiB, size int) {
		if memoryMiB < gpu.MemoryMiB {
			return
		}
		r := reach{profile: profile, size: size, err: math.Inf(1)}
		for _, clock := range m.ClocksMHz {
			r.err = min(r.err, fit.At(m, gpu, profile, clock).Error(prefer))
		}
		found = append(found, r)
	}
	try("", m.MemoryMiB, 1000)
	var parts []resource.Profile
	for _, p := range m.Profiles {
		if !strings.Contains(p.Name, "+") && !strings.Contains(p.Name, "-") {
			try(p.Name, p.MemoryMiB, 10*p.MemorySlices+p.ComputeSlices)
			parts = append(parts, m.Divisions(p)...)
		}
	}
	least := math.Inf(1)
	for _, r := range found {
		least = min(least, r.err)
	}
	for _, p := range parts {
		if try(p.Name, p.MemoryMiB, 10*p.MemorySlices+p.ComputeSlices); len(found) == 0 {
			continue
		}
		if last := &found[len(found)-1]; last.profile == p.Name {
			if last.instead = least; last.err > least-0.01 { // hardly closer
				found = found[:len(found)-1]
			}
		}
	}
	return found
}

func checkOptimum(t *testing.T, host, gpu string, o resource.FitOptions, best resource.Fit, found []reach) {
	t.Helper()
	const rounding = 1e-8
	bestError := best.Error(o.Prefer)
	own := found[slices.IndexFunc(found, func(r reach) bool { return r.profile == best.Profile })]
	if own.instead > 0 && own.instead <= o.Tolerance {
		t.Errorf("%s on %s, %+v: took %q, and a larger part is within the tolerance", gpu, host, o, best.Profile)
	}
	if bestError > own.err+rounding {
		t.Errorf("%s on %s, %+v: %s has a better clock than %d MHz", gpu, host, o, best.Profile, best.ClockMHz)
	}
	for _, r := range found {
		if r.instead > 0 && r.instead <= o.Tolerance {
			continue // another slice is within the tolerance
		}
		smaller := r.size < own.size && o.Tolerance > 0 && r.err <= o.Tolerance
		closer := r.err < bestError-rounding && bestError > o.Tolerance
		if smaller || closer {
			t.Errorf("%s on %s, %+v: took %q with error %.4f, %q has %.4f", gpu, host, o, best.Profile, bestError, r.profile, r.err)
		}
	}
}

// When the clock rises, rates never fall; when the maximum error rises, the error of the best fit never grows.
func TestMonotonic(t *testing.T) {
	for _, h := range catalog.Hosts() {
		for _, profile := range append([]resource.Profile{{}}, h.Model.Profiles...) {
			var last resource.Envelope
			for _, clock := range h.Model.ClocksMHz {
				e := fit.At(h.Model, resource.Target{}, profile.Name, clock).Got
				if e.FP32TFLOPS <= last.FP32TFLOPS || e.TensorTFLOPS < last.TensorTFLOPS || e.BandwidthGBs < last.BandwidthGBs {
					t.Errorf("%s %s: %+v at %d MHz, %+v below", h.Key, profile.Name, e, clock, last)
				}
				last = e
			}
			if last.BandwidthGBs > h.Model.BandwidthGBs {
				t.Errorf("%s %s: %g GB/s of %g", h.Key, profile.Name, last.BandwidthGBs, h.Model.BandwidthGBs)
			}
		}
		for _, gpu := range catalog.Targets() {
			all, err := fit.Best(h.Model, gpu, exact)
			if err != nil {
				continue
			}
			half := h.Model
			half.ClocksMHz = half.ClocksMHz[:len(half.ClocksMHz)/2]
			some, _ := fit.Best(half, gpu, exact)
			tolerant, _ := fit.Best(h.Model, gpu, resource.DefaultFit())
			least := all.Error(resource.PreferFP32) - 1e-9
			if some.Error(resource.PreferFP32) < least || tolerant.Error(resource.PreferFP32) < least {
				t.Errorf("%s on %s: a restriction made the fit better", gpu.Key, h.Key)
			}
		}
	}
}

func TestCandidatesAreInOrder(t *testing.T) {
	order := func(o resource.FitOptions) string {
		var names []string
		for _, f := range fit.Candidates(host(t, "h200"), target(t, "rtx-3090"), o) {
			names = append(names, fmt.Sprintf("%s@%d", f.Profile, f.ClockMHz))
		}
		return strings.Join(names, " ")
	}
	for _, c := range []struct {
		options resource.FitOptions
		want    string
	}{
		{resource.DefaultFit(), "4g.71gb@1980 7g.141gb@1050 @1050 3g.71gb@1980 2g.35gb@1980 1g.35gb@1980"},
		{exact, "7g.141gb@1050 @1050 4g.71gb@1980 3g.71gb@1980 2g.35gb@1980 1g.35gb@1980"},
		{resource.FitOptions{Prefer: resource.PreferBandwidth, Tolerance: 0.10}, "1g.35gb@975 2g.35gb@975 3g.71gb@495 4g.71gb@495 7g.141gb@345 @345"},
		{resource.FitOptions{Prefer: resource.PreferFP32, Tolerance: 0.20}, "3g.71gb@1980 4g.71gb@1980 7g.141gb@1050 @1050 2g.35gb@1980 1g.35gb@1980"},
		{resource.FitOptions{Prefer: resource.PreferFP32, Tolerance: 0.20, MaxError: ptr(0.05)}, "7g.141gb@1050 @1050 4g.71gb@1980 3g.71gb@1980 2g.35gb@1980 1g.35gb@1980"},
	} {
		if got := order(c.options); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.options, got, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	_, err := fit.Best(host(t, "h100"), target(t, "h200"), resource.DefaultFit())
	want := "H200 needs 143771 MiB and the largest slice of H100 80GB HBM3, the whole GPU, has 81559 MiB: take a smaller target or a larger GPU"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}

	o := resource.FitOptions{Prefer: resource.PreferFP32, Tolerance: 0.5, MaxError: ptr(0.25)}
	_, err = fit.Best(host(t, "a100-40gb"), target(t, "rtx-3090"), o)
	want = "the closest that A100-SXM4-40GB comes to RTX 3090 is the whole GPU at 1410 MHz, with an error in FP32 of 60.2 %, and fit.max_error allows 25.0 %: raise it, choose another fit.prefer or another GPU"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	o.MaxError = ptr(0.61)
	if _, err = fit.Best(host(t, "a100-40gb"), target(t, "rtx-3090"), o); err != nil {
		t.Errorf("within max_error: %v", err)
	}
}

func ptr(x float64) *float64 { return &x }

func BenchmarkCandidates(b *testing.B) {
	m, gpu, o := host(b, "h200"), target(b, "rtx-2060"), resource.DefaultFit()
	b.ReportAllocs()
	for b.Loop() {
		fit.Candidates(m, gpu, o)
	}
}

func BenchmarkAt(b *testing.B) {
	m, gpu := host(b, "h200"), target(b, "rtx-2060")
	b.ReportAllocs()
	for b.Loop() {
		fit.At(m, gpu, "4g.71gb", 1500)
	}
}

// A percentage is rounded down to steps of two SMs, and all of it is no limit.
func TestPartSMs(t *testing.T) {
	for _, c := range []struct {
		host          string
		percent, want int
	}{{"h200", 33, 42}, {"h200", 1, 0}, {"h200", 100, 132}, {"h200", 99, 130}, {"v100", 50, 40}, {"t4", 7, 2}, {"t4", 120, 40}} {
		if got := fit.PartSMs(host(t, c.host).SMs, c.percent); got != c.want {
			t.Errorf("%d %% of %s: %d SMs, want %d", c.percent, c.host, got, c.want)
		}
	}
}
