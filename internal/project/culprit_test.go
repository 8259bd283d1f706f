package project

import (
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

// TestCulprit: drift names a user only if the history has the change that is seen, as the last one of its kind.
func TestCulprit(t *testing.T) {
	host := resource.Host{GPUs: []resource.GPU{{UUID: "GPU-1", PowerMW: 300_000}}}
	power := diff.Drift{Class: diff.SettingClass(resource.PowerLimit), GPU: "GPU-1"}
	set := func(user, value string) ledger.Attempted {
		return ledger.Attempted{User: user, At: "2026-01-01T00:00:00.000001Z", Op: "set-" + resource.PowerLimit.String(), GPU: "GPU-1", Value: value}
	}
	refused := set("eve", "300 W")
	refused.Refused = "no"
	for name, test := range map[string]struct {
		history []ledger.Attempted
		want    string
	}{
		"the value that is seen":   {[]ledger.Attempted{set("ann", "200 W"), set("bob", "300 W"), refused}, "bob"},
		"changed by others since":  {[]ledger.Attempted{set("bob", "300 W"), set("ann", "200 W")}, ""},
		"no change of the setting": {[]ledger.Attempted{{User: "bob", Op: "take", GPU: "GPU-1"}}, ""},
	} {
		if by := culprit(power, resource.Prior{}, host, test.history); by.User != test.want {
			t.Errorf("%s: %+v", name, by)
		}
	}
}
