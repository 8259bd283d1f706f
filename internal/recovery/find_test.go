package recovery

import (
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// TestImportInMode: a container is not imported for a slice that the mode of the GPU excludes.
func TestImportInMode(t *testing.T) {
	slice := resource.Slice{GPU: "GPU-1", Profile: "1g.18gb", Size: 1}
	for name, test := range map[string]struct {
		mig   bool
		slice resource.Slice
		want  string
	}{
		"a slice, MIG off": {false, slice, "MIG mode is off there"},
		"a slice, MIG on":  {true, slice, ""},
		"whole, MIG on":    {true, resource.Slice{GPU: "GPU-1"}, "MIG mode is on there"},
		"whole, MIG off":   {false, resource.Slice{GPU: "GPU-1"}, ""},
	} {
		err := inMode(resource.GPU{UUID: "GPU-1", MIG: test.mig}, resource.Session{Slice: test.slice}, "big")
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestImportOfAnothersSlice: where a session of the project has the slice already, the error names the command that
// releases it.
func TestImportOfAnothersSlice(t *testing.T) {
	slice, handle := resource.Slice{Host: "lab", GPU: "GPU-1", Profile: "1g.18gb", Size: 1}, resource.Handle{UUID: "MIG-1"}
	f := finder{id: "MIG-1",
		prior: resource.Prior{Sessions: []resource.PriorSession{{Session: resource.Session{Address: resource.Nth("lost", 0), Slice: slice}, Handle: &handle}}},
		live:  resource.Live{Hosts: []resource.Host{{Name: "lab", GPUs: []resource.GPU{{UUID: "GPU-1", Slices: []resource.LiveSlice{{Slice: slice, Handle: handle}}}}}}}}
	if _, err := f.slice("ours"); err == nil || !strings.Contains(err.Error(), "that of session.lost[0] already") || !strings.Contains(err.Error(), "cosplay state rm lost-0") {
		t.Error(err)
	}
}

// TestImportDoubtsClock: with a stated baseline the clock may be locked, also where an interrupted import has acquired
// the GPU and not recorded the doubt.
func TestImportDoubtsClock(t *testing.T) {
	var none resource.Settings
	stated, locked := none.With(resource.MIGMode, resource.Off), none.With(resource.SMClock, 1575)
	held := func(g resource.PriorGPU) resource.Prior {
		g.Host, g.UUID = "lab", "GPU-1"
		return resource.Prior{GPUs: []resource.PriorGPU{g}}
	}
	for name, test := range map[string]struct {
		stated resource.Settings
		prior  resource.Prior
		want   bool
	}{
		"nothing is stated":         {none, resource.Prior{}, false},
		"the GPU is not held":       {stated, resource.Prior{}, true},
		"it is held":                {stated, held(resource.PriorGPU{}), true},
		"cosplay has set the clock": {stated, held(resource.PriorGPU{Applied: locked}), false},
		"the doubt is on record":    {stated, held(resource.PriorGPU{ClockUnsure: true}), false},
	} {
		if got := (&finder{baseline: test.stated, prior: test.prior}).doubts("lab", "GPU-1"); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
