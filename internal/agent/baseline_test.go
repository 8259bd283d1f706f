package agent

import (
	"errors"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

// TestBaselineNeedsNoCheck: if the driver no longer reports which values the GPU has, the
// root agent sets those of the baseline for a user, and no others.
func TestBaselineNeedsNoCheck(t *testing.T) {
	const gpu = "GPU-0"
	l := &nvmlLibrary{book: ledger.Book{Dir: t.TempDir()}}
	r := request{GPU: gpu, Holder: resource.Holder{Lineage: "a", State: "/a", User: "ann"}}
	take := ledger.Take{Baseline: resource.Settings{}.With(resource.SMClock, 1200), Trusted: true}
	if err := l.entry(r).Take(take, func() (*ledger.Found, error) {
		return &ledger.Found{Settings: resource.Settings{}.With(resource.PowerLimit, 700_000)}, nil
	}); err != nil {
		t.Fatal(err)
	}
	unsupported := &Error{Call: "nvmlDeviceGetPowerManagementLimitConstraints", Code: int(nvml.ERROR_NOT_SUPPORTED)}
	outOfRange := errors.New("out of its range")
	for _, test := range []struct {
		setting resource.Setting
		value   int
		err     error
		ok      bool
	}{
		{resource.PowerLimit, 700_000, unsupported, true},
		{resource.PowerLimit, 699_000, unsupported, false},
		{resource.PowerLimit, 700_000, outOfRange, false},
		{resource.SMClock, 1200, unsupported, true},
		{resource.SMClock, 1215, unsupported, false},
		{resource.SMClock, 1215, nil, true},
	} {
		r.Op, r.Setting, r.Value = opSet, &test.setting, test.value
		if err := baselineOr(l, r, test.err); (err == nil) != test.ok {
			t.Errorf("%s %d after %v: %v", test.setting, test.value, test.err, err)
		}
	}
}
