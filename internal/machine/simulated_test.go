package machine

import (
	"strings"
	"testing"
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
