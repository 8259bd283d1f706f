package fit_test

import (
	"math"
	"testing"

	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// TestBusy: what a session has of a GPU while all that share it are busy. The bandwidth that its own SMs can use is not
// divided again where it is less than its part.
func TestBusy(t *testing.T) {
	m, gpu := host(t, "h200"), target(t, "rtx-2060")
	mps := fit.Parts(m, gpu, "")(10, m.MaxClockMHz())
	part := fit.At(m, gpu, "1c.2g.35gb", m.MaxClockMHz())
	whole := fit.At(m, gpu, "", m.MaxClockMHz())
	for _, c := range []struct {
		name      string
		in        resource.Slice
		alone     resource.Fit
		n         int
		fp32, gbs float64 // of the rates alone, GB/s
	}{
		{"time slices", resource.Slice{Sharing: resource.SharingTime}, whole, 4, 0.25, 1200},
		{"MPS, less than its part", resource.Slice{Sharing: resource.SharingMPS, Percent: 10}, mps, 2, 1, mps.Got.BandwidthGBs},
		{"MPS, more than its part", resource.Slice{Sharing: resource.SharingMPS, Percent: 10}, mps, 8, 1, 600},
		{"compute instances", resource.Slice{Profile: "1c.2g.35gb", Sharing: resource.SharingCompute}, part, 2, 1, fit.At(m, gpu, "2g.35gb", m.MaxClockMHz()).Got.BandwidthGBs / 2},
	} {
		got := fit.Busy(m, c.in, c.alone, c.n).Got
		if math.Abs(got.FP32TFLOPS-c.fp32*c.alone.Got.FP32TFLOPS) > 1e-6 || math.Abs(got.BandwidthGBs-c.gbs) > 1e-6 {
			t.Errorf("%s: %.3f TFLOPS of %.3f, %.1f GB/s, want %.1f", c.name, got.FP32TFLOPS, c.alone.Got.FP32TFLOPS, got.BandwidthGBs, c.gbs)
		}
	}
}
