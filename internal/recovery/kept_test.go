package recovery

import (
	"testing"

	"cosplay/internal/resource"
)

// TestGiven: an index or a UUID proves which GPU or slice a container has; where nothing proves it, cosplay does not call it
// missing.
func TestGiven(t *testing.T) {
	slice := func(uuid string) resource.LiveSlice {
		return resource.LiveSlice{Handle: resource.Handle{UUID: uuid}}
	}
	host := resource.Host{Name: "lab", GPUs: []resource.GPU{
		{Index: 0, UUID: "GPU-aa", Slices: []resource.LiveSlice{slice("MIG-one")}},
		{Index: 1, UUID: "GPU-bb", Slices: []resource.LiveSlice{slice("MIG-two"), slice("MIG-three")}},
		{Index: 2, UUID: "GPU-cc"},
	}}
	missing := isMissing(host)
	for id, want := range map[string]struct{ gpu, slice, why string }{
		"2":             {gpu: "GPU-cc"},
		"GPU-cc":        {gpu: "GPU-cc"},
		"gpu-CC":        {gpu: "GPU-cc"},
		"7":             {why: missing},
		"GPU-dd":        {why: missing},
		"MIG-two":       {slice: "MIG-two"},
		"MIG-lost":      {slice: "MIG-lost"},
		"0:0":           {slice: "MIG-one"},
		"0:1":           {why: missing},
		"2:0":           {why: missing},
		"7:0":           {why: missing},
		"1:0":           {why: isUnclear},
		"0:x":           {why: isUnclear},
		"mig0:0":        {why: isUnclear},
		"amd.com/gpu=0": {why: isUnclear},
		"a.b/gpu=0:0":   {why: isUnclear},
	} {
		gpu, slice, why := given(host, id)
		if gpu.UUID != want.gpu || slice != want.slice || why != want.why {
			t.Errorf("%s: %q, %q, %q", id, gpu.UUID, slice, why)
		}
	}
}
