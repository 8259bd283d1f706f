// Package fit tells how close a slice of one GPU comes to another GPU, and
// which slice at which clock comes closest. It is a function of values.
//
// The throughput model: FP32 and tensor rates grow with SMs x clock. Bandwidth
// is the least of three: the slice's share of the memory's, what L2 passes on,
// and what the SMs take in; the latter two grow with the clock. Memory and L2
// are shared out by memory slices, not by SMs. How bandwidth depends on the
// clock is assumed, not measured.
package fit

import (
	"math"
	"strings"

	"cosplay/internal/resource"
)

const (
	efficiency      = 0.75 // of L2 and SMs in passing on memory
	smBytesPerClock = 64
)

// slice is a GPU instance profile, or the whole GPU, in the model's terms.
// Rates are per MHz of SM clock.
type slice struct {
	profile       string // "" is the whole GPU
	sms           int
	memoryMiB     int
	memorySlices  int
	computeSlices int

	fp32          float64 // TFLOPS per MHz
	tensor        float64 // TFLOPS per MHz
	tensorMaxMHz  float64 // tensor cores gain nothing above it: the power limit
	bandwidth     float64 // GB/s that the memory gives
	bandwidthRate float64 // GB/s per MHz that L2 and SMs pass on
}

// whole is the GPU without MIG. It counts as larger than its largest profile.
func whole(m resource.Model) slice {
	s := share(m, m.SMs, 1)
	s.memoryMiB = m.MemoryMiB
	s.memorySlices, s.computeSlices = m.MemorySlices+1, m.ComputeSlices+1
	return s
}

// ofProfile is the slice that a profile of the model makes.
func ofProfile(m resource.Model, p *resource.Profile) slice {
	s := share(m, p.SMs, float64(p.MemorySlices)/float64(m.MemorySlices))
	s.profile, s.memoryMiB = p.Name, p.MemoryMiB
	s.memorySlices, s.computeSlices = p.MemorySlices, p.ComputeSlices
	return s
}

// share gives the rates of some SMs with a part of the memory.
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

// tensorMaxMHz is the clock at which a whole GPU's tensor cores reach its power
// limit: the one that their printed rates are for.
func tensorMaxMHz(computeCapability string) float64 {
	if computeCapability == "9.0" {
		return 1830
	}
	return math.Inf(1)
}

// l2BytesPerClock is what the L2 of a whole GPU passes on; 0 where nobody says.
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
		return 5120 // taken to be the A100's
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

// find returns the slice of a profile's name; "" is the whole GPU, and one that
// the model does not have is no slice of anything.
func find(m resource.Model, profile string) slice {
	if profile == "" {
		return whole(m)
	}
	for i := range m.Profiles {
		if m.Profiles[i].Name == profile {
			return ofProfile(m, &m.Profiles[i])
		}
	}
	return slice{}
}

// choosable reports whether a profile may be chosen. Those with a suffix, such
// as 1g.18gb+me, add or drop media engines, which no target asks for.
func choosable(profile string) bool { return !strings.ContainsAny(profile, "+-") }

// At is the fit of a slice at an SM clock, whether or not it holds the target's
// memory. Profile "" is the whole GPU without MIG; one that the model does not
// have gets nothing.
func At(m resource.Model, t resource.Target, profile string, clockMHz int) resource.Fit {
	s := find(m, profile)
	return s.fit(t.Envelope(), clockMHz)
}

func (s *slice) fit(want resource.Envelope, clockMHz int) resource.Fit {
	return resource.Fit{Profile: s.profile, ClockMHz: clockMHz, Got: s.at(clockMHz), Want: want}
}
