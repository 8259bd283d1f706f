package machine

import (
	"strings"
	"testing"

	"cosplay/internal/config"
	"cosplay/internal/sim"
)

// TestCheckSimulate: the check refuses what creates no host.
func TestCheckSimulate(t *testing.T) {
	for spec, want := range map[string]string{
		"1 x h200":           "",
		"2 x h200, 1 x l40s": "",
		"1 x h2000":          `unknown GPU to run on "h2000"`,
		"1 x h200, 1 x zzz":  `unknown GPU to run on "zzz"`,
		"h200 times two":     "h200",
		"missing.json":       "missing.json",
	} {
		err := CheckSimulate(t.TempDir(), spec)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
		if _, created := Simulated(t.TempDir(), spec); (created == nil) != (err == nil) {
			t.Errorf("%q: checked %v, simulated %v", spec, err, created)
		}
	}
}

// TestComputeIsFollowed: a simulated host has the compute of its block when it is created, and after each change.
func TestComputeIsFollowed(t *testing.T) {
	m := &Machine{Dir: t.TempDir()}
	for i, c := range []struct{ simulate, compute string }{
		{"1 x h200", config.ComputeNone}, {"1 x h200", config.ComputeNone}, {"1 x h200", ""}, {"2 x h200", ""}, {"3 x h200", config.ComputeNone}, {"3 x h200", "shapes"},
	} {
		if err := m.simulation(config.Host{Name: "lab", Simulate: c.simulate, Compute: c.compute}).ensure(); err != nil {
			t.Fatal(err)
		}
		h, err := sim.Open(m.SimDir("lab"))
		if err != nil {
			t.Fatal(err)
		}
		simulates, none, err := h.Made()
		h.Close()
		if err != nil || simulates != c.simulate || none != (c.compute == config.ComputeNone) {
			t.Errorf("%d: it simulates %q, computes nothing: %t, %v", i, simulates, none, err)
		}
	}
}
