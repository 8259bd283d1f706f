package resource

import "testing"

// TestSliceMatch: what of a record proves that a slice is the recorded one, what
// proves the opposite, and what remains open.
func TestSliceMatch(t *testing.T) {
	const gpu, other = "GPU-51a00c0d-94b6-4b2f-a1f0-000000000000", "GPU-51a00c0d-94b6-4b2f-a1f0-000000000001"
	const unique, another = "MIG-41c2f0a8-90d6-5a3c-8a15-2f0d0b8f5a11", "MIG-5c2e0000-90d6-5a3c-8a15-2f0d0b8f5a11"
	made := func(uuid string, meddle ...func(*LiveSlice)) LiveSlice {
		s := LiveSlice{Slice: Slice{Host: "lab", GPU: gpu, Profile: "1g.18gb", Start: 4, Size: 1}, Handle: Handle{GPUInstance: 11, UUID: uuid, Boot: "b1"}}
		for _, m := range meddle {
			m(&s)
		}
		return s
	}
	boot := func(id string) func(*LiveSlice) { return func(s *LiveSlice) { s.Boot = id } }
	ids := func(gi, ci int) func(*LiveSlice) {
		return func(s *LiveSlice) { s.GPUInstance, s.ComputeInstance = gi, ci }
	}
	byIDs := IDName(gpu, 11, 0)
	for name, c := range map[string]struct {
		record, live LiveSlice
		want         SliceMatch
	}{
		"the same name":                            {made(unique), made(unique), SameSlice},
		"another name":                             {made(unique), made(another), OtherSlice},
		"the host is called otherwise":             {made(unique), made(unique, func(s *LiveSlice) { s.Host = "here" }), SameSlice},
		"another GPU":                              {made(unique), made(unique, func(s *LiveSlice) { s.GPU = other }), OtherSlice},
		"another profile":                          {made(unique), made(unique, func(s *LiveSlice) { s.Profile = "1g.35gb" }), OtherSlice},
		"another slot":                             {made(unique), made(unique, func(s *LiveSlice) { s.Start = 5 }), OtherSlice},
		"the same name after a reboot":             {made(unique), made(unique, boot("b2")), OtherSlice},
		"a record without a boot":                  {made(unique, boot("")), made(unique), SameSlice},
		"named by ids":                             {made(byIDs), made(byIDs), UnprovenSlice},
		"named by ids, after a reboot":             {made(byIDs), made(byIDs, boot("b2")), OtherSlice},
		"named by ids, a record without a boot":    {made(byIDs, boot("")), made(byIDs), UnprovenSlice},
		"named by other ids":                       {made(byIDs), made(IDName(gpu, 12, 0), ids(12, 0)), OtherSlice},
		"a newer driver":                           {made(byIDs), made(unique), UnprovenSlice},
		"an older driver":                          {made(unique), made(byIDs), UnprovenSlice},
		"a newer driver, other ids":                {made(byIDs), made(unique, ids(12, 0)), OtherSlice},
		"an older driver, another GPU in the name": {made(unique), made(IDName(other, 11, 0)), OtherSlice},
		"a newer driver after a reboot":            {made(byIDs), made(unique, boot("b2")), OtherSlice},
		"its compute instance is lost":             {made(unique), made(""), SameSlice},
		"half a slice of other ids":                {made(unique), made("", ids(12, 0)), OtherSlice},
		"half on record, whole now":                {made(""), made(unique), OtherSlice},
	} {
		if got := c.record.Match(c.live); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestNamesOfSlices in both forms.
func TestNamesOfSlices(t *testing.T) {
	const gpu = "GPU-51a00c0d-94b6-4b2f-a1f0-000000000000"
	s := LiveSlice{Slice: Slice{GPU: gpu}, Handle: Handle{GPUInstance: 7, ComputeInstance: 1, UUID: "MIG-41c2"}}
	for name, want := range map[string]bool{
		"MIG-41c2": true, "MIG-" + gpu + "/7/1": true, "MIG-" + gpu + "/7/0": false, "MIG-" + gpu + "/8/1": false, "MIG-GPU-0/7/1": false, "": false, "MIG-": false,
	} {
		if got := s.IsCalled(name); got != want {
			t.Errorf("is it called %q: %t", name, got)
		}
	}
	for name, want := range map[string]bool{
		"MIG-GPU-1/7/0": true, "MIG-GPU-1/7": false, "MIG-1/7/0": false, "GPU-1/7/0": false, "MIG-GPU-1/a/0": false, "MIG-41c2": false, "": false,
	} {
		if got := (Handle{UUID: name}).NamedByIDs(); got != want {
			t.Errorf("is %q made of ids: %t", name, got)
		}
	}
	if (LiveSlice{}).IsCalled("") {
		t.Error("a slice without a name has one")
	}
}
