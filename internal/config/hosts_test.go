package config

import (
	"errors"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// TestHosts checks that Hosts returns the valid hosts of a configuration of which other parts are wrong.
func TestHosts(t *testing.T) {
	o := Options{Dir: "/project", Target: func(string) (resource.Target, error) { return resource.Target{}, errors.New("none") }, Simulate: func(string) error { return nil }}
	for name, test := range map[string]struct{ text, want string }{
		"all is well":      {`host "lab" {}`, "lab"},
		"none":             {`session "w" { target = "x" }`, ""},
		"a wrong session":  {"host \"lab\" { runtime = \"docker\" }\nsession \"w\" { target = nothing }", "lab"},
		"a wrong host too": {"host \"lab\" { gpus = \"x\" }\nhost \"b\" {}\nhost \"a\" {}", "a b"},
		"incomplete":       {"host \"lab\" {}\nsession \"w\" {", "lab"},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, h := range Hosts(map[string][]byte{"fleet.hcl": []byte(test.text)}, o) {
				names = append(names, h.Name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestParseGPU(t *testing.T) {
	gpu := resource.GPU{Index: 3, UUID: "GPU-8f2a0000-1111-2222-3333-444455556666", PCI: "00000000:8A:00.0"}
	for typed, matches := range map[string]bool{"3": true, "2": false, "GPU-8f2a": true, "gpu-8F2A0000": true, "GPU-8f2b": false, "8a:00.0": true, "0000:8a:00.0": true, "0000:8b:00.0": false} {
		s, err := ParseGPU(typed)
		if err != nil || s.Matches(gpu) != matches {
			t.Errorf("%s: %v, matches %v", typed, err, s.Matches(gpu))
		}
	}
	for _, typed := range []string{"", "-1", "x", "MIG-8f2a0000", "GPU-", "*"} {
		if s, err := ParseGPU(typed); err == nil {
			t.Errorf("%q is taken for %s", typed, s)
		}
	}
}
