// Package fit computes how close a slice of one GPU comes to another GPU, and which slice at which clock comes
// closest. It is a pure function of values.
//
// The throughput model: FP32 and tensor rates grow with SMs x clock. Bandwidth is the least of three values: the
// slice's share of the memory bandwidth, the rate that L2 passes on, and the rate that the SMs can consume. The
// latter two grow with the clock. Memory and L2 are divided by memory slices, not by SMs. The dependency of bandwidth
// on the clock is an assumption, not a measurement.
package fit

import (
	"math"

	"cosplay/internal/resource"
)

const (
	efficiency      = 0.75 // assumed share of the theoretical rate that L2 and SMs reach
	smBytesPerClock = 64
)

// slice is a GPU instance profile, or the whole GPU, in the model's terms.
// Rates are per MHz of SM clock.
type slice struct {
	profile       string // empty for the whole GPU
	sms           int
	memoryMiB     int
	memorySlices  int
	computeSlices int

	fp32          float64 // TFLOPS per MHz
	tensor        float64 // TFLOPS per MHz
	tensorMaxMHz  float64 // above this clock the power limit keeps tensor throughput constant
	bandwidth     float64 // GB/s of the memory
	bandwidthRate float64 // GB/s per MHz of L2 and SMs
}

// whole is the GPU without MIG. It counts as larger than its largest profile.
func whole(m resource.Model) slice {
	s := share(m, m.SMs, 1)
	s.memoryMiB = m.MemoryMiB
	s.memorySlices, s.computeSlices = m.MemorySlices+1, m.ComputeSlices+1
	return s
}

// ofProfile returns the slice that a profile of the model creates.
func ofProfile(m resource.Model, p *resource.Profile) slice {
	s := share(m, p.SMs, float64(p.MemorySlices)/float64(m.MemorySlices))
	s.profile, s.memoryMiB = p.Name, p.MemoryMiB
	s.memorySlices, s.computeSlices = p.MemorySlices, p.ComputeSlices
	return s
}

// share returns the rates of a number of SMs with a part of the memory.
func share(m resource.Model, sms int, part float64) slice {
	const terahertz = 1e6 // MHz
	s := slice{
		sms:           sms,
		fp32:          m.FP32PerSM * float64(sms) / terahertz,
		tensor:        m.TensorPerSM * float64(sms) / terahertz,
		tensorMaxMHz:  math.Inf(1),
		bandwidth:     m.BandwidthGBs * part,
		bandwidthRate: efficiency * smBytesPerClock * float64(sms) / 1e3,
	}
	if part == 1 {
		s.tensorMaxMHz = tensorMaxMHz(m.ComputeCapability)
	}
	if l2 := l2BytesPerClock(m); l2 > 0 {
		s.bandwidthRate = min(s.bandwidthRate, efficiency*l2*part/1e3)
	}
	return s
}

// tensorMaxMHz returns the clock at which the tensor cores of a whole GPU reach its power limit. The vendor's
// published rates are for this clock.
func tensorMaxMHz(computeCapability string) float64 {
	if computeCapability == "9.0" {
		return 1830
	}
	return math.Inf(1)
}

// l2BytesPerClock returns the bytes that the L2 of a whole GPU delivers per clock; 0 if no source states it.
func l2BytesPerClock(m resource.Model) float64 {
	switch m.ComputeCapability {
	case "7.0":
		return 2048
	case "8.0":
		if m.L2MiB > 0 && m.L2MiB < 40 {
			return 128 * m.L2MiB // an A30 has fewer of the A100's L2 parts
		}
		return 5120
	case "9.0":
		return 5120 // assumed to equal the A100's
	}
	return 0
}

// at gives the slice's throughput at an SM clock.
func (s *slice) at(clockMHz int) resource.Envelope {
	clock := float64(clockMHz)
	return resource.Envelope{
		SMs:          s.sms,
		FP32TFLOPS:   s.fp32 * clock,
		TensorTFLOPS: s.tensor * min(clock, s.tensorMaxMHz),
		BandwidthGBs: min(s.bandwidth, s.bandwidthRate*clock),
		MemoryMiB:    s.memoryMiB,
	}
}

// find returns the slice for a profile's name. An empty name is the whole GPU. An unknown name gives a slice without
// resources.
func find(m resource.Model, profile string) slice {
	if profile == "" {
		return whole(m)
	}
	if p, ok := m.Profile(profile); ok {
		return ofProfile(m, &p)
	}
	return slice{}
}

// PartSMs returns the SMs, of those of a slice, that MPS gives to a process of this active thread percentage. It rounds down to steps of two:
// facts of NVIDIA's guide, the step was never measured.
func PartSMs(sms, percent int) int {
	if percent >= 100 {
		return sms
	}
	return 2 * (percent * sms / 200)
}

// Parts returns the fit of a percentage of the SMs of a slice, with all of its memory bandwidth, at an SM clock. An
// empty profile is the whole GPU.
func Parts(m resource.Model, t resource.Target, profile string) func(percent, clockMHz int) resource.Fit {
	of, part, want := find(m, profile), 1.0, t.Envelope()
	if profile != "" {
		part = float64(of.memorySlices) / float64(m.MemorySlices)
	}
	return func(percent, clockMHz int) resource.Fit {
		s := share(m, PartSMs(of.sms, percent), part)
		s.profile, s.memoryMiB = profile, of.memoryMiB
		return s.fit(want, clockMHz)
	}
}

// Busy returns the fit of a session in a slice while all n sessions are busy with which it shares the slice, its GPU
// instance or its GPU. By time slices each has all of it for 1/n of the time. Where the SMs are divided, each keeps the
// rates of its SMs, and the memory's bandwidth is divided evenly.
func Busy(m resource.Model, in resource.Slice, f resource.Fit, n int) resource.Fit {
	part := 1 / float64(n)
	if in.Percent > 0 || in.Divides() {
		whole := find(m, in.Instance().Profile)
		if all := whole.at(f.ClockMHz).BandwidthGBs; all > 0 { // a profile that the GPU no longer reports has none
			f.Got.BandwidthGBs = min(f.Got.BandwidthGBs, part*all)
		}
		return f
	}
	f.Got.BandwidthGBs *= part
	f.Got.FP32TFLOPS *= part
	f.Got.TensorTFLOPS *= part
	return f
}

// At returns the fit of a slice at an SM clock, whether or not the slice has the target's memory. An empty profile is
// the whole GPU without MIG. A profile that the model does not have gets no resources.
func At(m resource.Model, t resource.Target, profile string, clockMHz int) resource.Fit {
	s := find(m, profile)
	return s.fit(t.Envelope(), clockMHz)
}

func (s *slice) fit(want resource.Envelope, clockMHz int) resource.Fit {
	return resource.Fit{Profile: s.profile, ClockMHz: clockMHz, Got: s.at(clockMHz), Want: want}
}
