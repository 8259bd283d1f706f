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
