package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"cosplay/internal/resource"
)

// Candidates returns the fit of every slice that has the target's memory, each at its best clock, the best fit first.
// Among fits within the tolerance, the smaller slice is better; otherwise the smaller error is. If MaxError is below
// the tolerance, it replaces the tolerance. Fits beyond MaxError are in the list, too.
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
		if !resource.Variant(m.Profiles[i].Name) {
			add(ofProfile(m, &m.Profiles[i]))
		}
	}
	add(whole(m))
	for _, p := range Closer(m, t, o, m.ClocksMHz) {
		add(ofProfile(m, &p))
	}
	slices.SortFunc(found, candidate.compare)
	fits := make([]resource.Fit, len(found))
	for i := range found {
		fits[i] = found[i].fit
	}
	return fits
}

// closerBy is the error by which a compute instance has to be closer to a target than all that it is a part of.
const closerBy = 0.01

// Closer returns the compute instances smaller than their GPU instance that come closer to a target than every GPU
// instance and the whole GPU, at these SM clocks in MHz. There are none where one of those is within the tolerance.
func Closer(m resource.Model, t resource.Target, o resource.FitOptions, clocksMHz []int) (closer []resource.Profile) {
	want := t.Envelope()
	errorOf := func(s slice) float64 {
		if s.memoryMiB < want.MemoryMiB || len(clocksMHz) == 0 {
			return math.Inf(1)
		}
		return s.fit(want, s.bestClock(want, o.Prefer, clocksMHz)).Error(o.Prefer)
	}
	least := errorOf(whole(m))
	for i := range m.Profiles {
		least = min(least, errorOf(ofProfile(m, &m.Profiles[i])))
	}
	if least <= o.Tolerance {
		return nil
	}
	for _, p := range m.Profiles {
		for _, part := range m.Divisions(p) {
			if !resource.Variant(p.Name) && errorOf(ofProfile(m, &part)) < least-closerBy {
				closer = append(closer, part)
			}
		}
	}
	return closer
}

// Best returns the first candidate. It fails if no slice has the target's memory, or if the error exceeds MaxError.
func Best(m resource.Model, t resource.Target, o resource.FitOptions) (resource.Fit, error) {
	candidates := Candidates(m, t, o)
	if len(candidates) == 0 {
		return resource.Fit{}, fmt.Errorf("%s needs %d MiB and the largest slice of %s, the whole GPU, has %d MiB: take a smaller target or a larger GPU",
			t.ShortName(), t.MemoryMiB, m.ShortModel(), m.MemoryMiB)
	}
	best := candidates[0]
	if o.MaxError != nil && best.Error(o.Prefer) > *o.MaxError {
		return resource.Fit{}, tooFar(m, t, o)
	}
	return best, nil
}

// bestClock returns the clock (MHz, given in ascending order) with the smallest error. Of equal errors, it prefers
// the smaller error of the other figure, then the higher clock. Errors are compared as ratios of at least 1: the
// order is the same as with logarithms, and cheaper to compute.
func (s *slice) bestClock(want resource.Envelope, prefer resource.Preference, clocksMHz []int) int {
	best, bestError, bestOther := 0, math.Inf(1), math.Inf(1)
	for _, clock := range clocksMHz {
		f := float64(clock)
		fp32 := off(s.fp32*f, want.FP32TFLOPS)
		bandwidth := off(min(s.bandwidth, s.bandwidthRate*f), want.BandwidthGBs)
		err, other := Weigh(prefer, fp32, bandwidth, fp32*bandwidth)
		if near(err, bestError) && (near(other, bestOther) || other < bestOther) || err < bestError && !near(err, bestError) {
			best, bestError, bestOther = clock, err, other
		}
	}
	return best
}

// off returns how far a figure is from the wanted one, as a ratio of at least 1.
func off(got, want float64) float64 { return max(got/want, want/got) }

// Weigh returns the error that a preference minimizes and the error that decides between equals. With "balanced", the
// latter is the larger of the two.
func Weigh[N cmp.Ordered](prefer resource.Preference, fp32, bandwidth, both N) (err, other N) {
	switch prefer {
	case resource.PreferBandwidth:
		return bandwidth, fp32
	case resource.PreferBalanced:
		return both, max(fp32, bandwidth)
	default:
		return fp32, bandwidth
	}
}

// near reports whether two ratios are equal apart from rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*b }

// candidate is a fit with its sort keys.
type candidate struct {
	slice
	fit        resource.Fit
	within     bool    // whether the error is within the tolerance
	err, other float64 // rounded, so that almost equal values compare as equal
}

func newCandidate(s *slice, want resource.Envelope, clockMHz int, o resource.FitOptions) candidate {
	f := s.fit(want, clockMHz)
	fp32, bandwidth := f.Error(resource.PreferFP32), f.Error(resource.PreferBandwidth)
	err, other := Weigh(o.Prefer, fp32, bandwidth, (fp32+bandwidth)/2)
	within := o.Tolerance > 0 && err <= o.Tolerance
	return candidate{slice: *s, fit: f, within: within, err: math.Round(err * 1e9), other: math.Round(other * 1e9)}
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
