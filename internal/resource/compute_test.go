package resource

import (
	"slices"
	"testing"
)

// h200 has the profiles that matter here, as nvidia-smi mig -lgip lists them.
var h200 = Model{SMs: 132, ComputeSlices: 7, MemorySlices: 8, Profiles: []Profile{
	{Name: "1g.18gb", SMs: 16, ComputeSlices: 1}, {Name: "2g.35gb", SMs: 32, ComputeSlices: 2},
	{Name: "3g.71gb", SMs: 60, ComputeSlices: 3}, {Name: "4g.71gb", SMs: 64, ComputeSlices: 4}, {Name: "7g.141gb", SMs: 132, ComputeSlices: 7},
}}

// TestDivisions: the compute instances of each GPU instance, as nvidia-smi mig -lcip and -lcipp list them.
func TestDivisions(t *testing.T) {
	for instance, want := range map[string]map[string]struct {
		sms    int
		starts []int
	}{
		"1g.18gb":  {},
		"2g.35gb":  {"1c.2g.35gb": {16, []int{0, 1}}},
		"3g.71gb":  {"1c.3g.71gb": {16, []int{0, 1, 2}}, "2c.3g.71gb": {32, []int{0}}},
		"4g.71gb":  {"1c.4g.71gb": {16, []int{0, 1, 2, 3}}, "2c.4g.71gb": {32, []int{0, 2}}},
		"7g.141gb": {"1c.7g.141gb": {16, []int{0, 1, 2, 3, 4, 5, 6}}, "2c.7g.141gb": {32, []int{0, 2, 4}}, "3c.7g.141gb": {48, []int{0, 4}}, "4c.7g.141gb": {64, []int{0}}},
	} {
		p, _ := h200.Profile(instance)
		parts := h200.Divisions(p)
		if len(parts) != len(want) {
			t.Errorf("%s has the parts %v", instance, parts)
		}
		for _, part := range parts {
			w := want[part.Name]
			if starts := h200.ComputeStarts(part.Name); part.SMs != w.sms || !slices.Equal(starts, w.starts) {
				t.Errorf("%s has %d SMs and can begin at %v, want %+v", part.Name, part.SMs, starts, w)
			}
			if found, ok := h200.Profile(part.Name); !ok || found.Name != part.Name || found.SMs != part.SMs || found.ComputeSlices != p.ComputeSlices {
				t.Errorf("%s is found as %+v", part.Name, found)
			}
		}
	}
	for _, name := range []string{"1c.1g.18gb", "2c.2g.35gb", "3c.4g.71gb", "5c.7g.141gb", "0c.2g.35gb", "c.2g.35gb", "1c.2g.10gb"} {
		if p, ok := h200.Profile(name); ok {
			t.Errorf("%s is found as %+v", name, p)
		}
	}
}

// TestCrosses: compute instances of one GPU instance exist side by side if their compute slices do.
func TestCrosses(t *testing.T) {
	at := func(profile string, start, size, compute int) Slice {
		return Slice{GPU: "GPU-0", Profile: profile, Start: start, Size: size, ComputeStart: compute}
	}
	for _, c := range []struct {
		a, b Slice
		want bool
	}{
		{at("1c.2g.35gb", 2, 2, 0), at("1c.2g.35gb", 2, 2, 1), false},
		{at("1c.2g.35gb", 2, 2, 1), at("1c.2g.35gb", 2, 2, 1), true},
		{at("1c.2g.35gb", 2, 2, 0), at("1c.2g.35gb", 4, 2, 0), false},
		{at("1c.2g.35gb", 2, 2, 0), at("2g.35gb", 2, 2, 0), true},
		{at("1c.3g.71gb", 0, 4, 1), at("2c.3g.71gb", 0, 4, 0), true},
		{at("1c.3g.71gb", 0, 4, 2), at("2c.3g.71gb", 0, 4, 0), false},
		{at("1c.4g.71gb", 0, 4, 2), at("2c.3g.71gb", 0, 4, 0), true}, // parts of different GPU instances
		{at("1c.3g.71gb", 0, 4, 0), at("1g.18gb", 3, 1, 0), true},
	} {
		if c.a.Crosses(c.b) != c.want || c.b.Crosses(c.a) != c.want {
			t.Errorf("%v and %v exclude each other: %v, want %v", c.a, c.b, !c.want, c.want)
		}
	}
}

// TestMatchOfComputeInstances: the place in the GPU instance counts, and a GPU instance without compute instances is
// what is left of each of them.
func TestMatchOfComputeInstances(t *testing.T) {
	first := LiveSlice{Slice: Slice{Profile: "1c.2g.35gb", Size: 2}, Handle: Handle{GPUInstance: 3, UUID: "MIG-a"}}
	second := LiveSlice{Slice: Slice{Profile: "1c.2g.35gb", Size: 2, ComputeStart: 1}, Handle: Handle{GPUInstance: 3, ComputeInstance: 1, UUID: "MIG-b"}}
	empty := LiveSlice{Slice: Slice{Profile: "2g.35gb", Size: 2}, Handle: Handle{GPUInstance: 3}}
	again := empty
	again.GPUInstance = 4
	full := empty
	full.UUID = "MIG-a"
	for name, c := range map[string]struct {
		record, live LiveSlice
		want         SliceMatch
	}{
		"itself":                       {first, first, SameSlice},
		"the other one":                {first, second, OtherSlice},
		"its GPU instance, empty":      {first, empty, SameSlice},
		"another GPU instance, empty":  {first, again, OtherSlice},
		"one that fills its instance":  {first, full, OtherSlice},
		"an empty one, then the other": {empty, second, OtherSlice},
	} {
		if got := c.record.Match(c.live); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
