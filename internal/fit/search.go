package fit

import (
	"cmp"
	"math"
	"slices"

	"cosplay/internal/resource"
)

// Candidates lists the fit of every slice that holds the target's memory, each
// at its best clock, the best fit first. Within the tolerance the smaller slice
// is better; beyond it, and without one, the smaller error is. A MaxError below
// the tolerance takes its place; fits beyond it are listed all the same.
func Candidates(m resource.Model, t resource.Target, o resource.FitOptions) []resource.Fit {
	if len(m.ClocksMHz) == 0 {
		return nil
	}
	if o.MaxError != nil {
		o.Tolerance = min(o.Tolerance, *o.MaxError)
	}
	want := t.Envelope()
	found := make([]candidate, 0, len(m.Profiles)+1)
	add := func(s slice) {
		if s.memoryMiB >= want.MemoryMiB {
			found = append(found, newCandidate(&s, want, s.bestClock(want, o.Prefer, m.ClocksMHz), o))
		}
	}
	for i := range m.Profiles {
		if choosable(m.Profiles[i].Name) {
			add(ofProfile(m, &m.Profiles[i]))
		}
	}
	add(whole(m))
	slices.SortFunc(found, candidate.compare)
	fits := make([]resource.Fit, len(found))
	for i := range found {
		fits[i] = found[i].fit
	}
	return fits
}

// Best is the first of the candidates. Its errors are *NoRoomError and, with a
// MaxError, *TooFarError.
func Best(m resource.Model, t resource.Target, o resource.FitOptions) (resource.Fit, error) {
	candidates := Candidates(m, t, o)
	if len(candidates) == 0 {
		return resource.Fit{}, &NoRoomError{Model: m.ShortModel(), Target: t.ShortName(), WantMiB: t.MemoryMiB, HaveMiB: m.MemoryMiB}
	}
	best := candidates[0]
	if o.MaxError != nil && best.Error(o.Prefer) > *o.MaxError {
		return resource.Fit{}, tooFar(m, t, o)
	}
	return best, nil
}

// bestClock is the one of some clocks (MHz, ascending) with the least error; of
// equals, that of the least error in the other figure, then the higher. Errors are
// compared as ratios of at least one, which orders them as logarithms would and is
// cheaper.
func (s *slice) bestClock(want resource.Envelope, prefer resource.Preference, clocksMHz []int) int {
	best, bestError, bestOther := 0, math.Inf(1), math.Inf(1)
	for _, clock := range clocksMHz {
		f := float64(clock)
		fp32 := off(s.fp32*f, want.FP32TFLOPS)
		bandwidth := off(min(s.bandwidth, s.bandwidthRate*f), want.BandwidthGBs)
		err, other := weigh(prefer, fp32, bandwidth, fp32*bandwidth)
		if near(err, bestError) && (near(other, bestOther) || other < bestOther) || err < bestError && !near(err, bestError) {
			best, bestError, bestOther = clock, err, other
		}
	}
	return best
}

// off is how far a figure is from the one wanted, as a ratio of at least one.
func off(got, want float64) float64 { return max(got/want, want/got) }

// weigh returns the error that a preference keeps small and the one that
// decides between equals. For the balance of both that is the worse of them.
func weigh(prefer resource.Preference, fp32, bandwidth, both float64) (err, other float64) {
	switch prefer {
	case resource.PreferBandwidth:
		return bandwidth, fp32
	case resource.PreferBalanced:
		return both, max(fp32, bandwidth)
	}
	return fp32, bandwidth
}

// near reports whether two ratios are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*b }

// candidate is a fit with what it is ordered by.
type candidate struct {
	fit           resource.Fit
	within        bool    // the tolerance
	err, other    float64 // rounded, so that equals are equal
	memorySlices  int
	computeSlices int
}

func newCandidate(s *slice, want resource.Envelope, clockMHz int, o resource.FitOptions) candidate {
	f := s.fit(want, clockMHz)
	fp32, bandwidth := f.Error(resource.PreferFP32), f.Error(resource.PreferBandwidth)
	err, other := weigh(o.Prefer, fp32, bandwidth, (fp32+bandwidth)/2)
	return candidate{
		fit:           f,
		within:        o.Tolerance > 0 && err <= o.Tolerance,
		err:           math.Round(err * 1e9),
		other:         math.Round(other * 1e9),
		memorySlices:  s.memorySlices,
		computeSlices: s.computeSlices,
	}
}

func (c candidate) compare(o candidate) int {
	size := cmp.Or(c.memorySlices-o.memorySlices, c.computeSlices-o.computeSlices)
	errors := cmp.Or(cmp.Compare(c.err, o.err), cmp.Compare(c.other, o.other))
	switch {
	case c.within && o.within:
		return cmp.Or(size, errors)
	case c.within:
		return -1
	case o.within:
		return 1
	}
	return cmp.Or(errors, size)
}
