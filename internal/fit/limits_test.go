package fit_test

import (
	"strings"
	"testing"

	"cosplay/internal/fit"
)

func TestLimits(t *testing.T) {
	for _, c := range []struct{ host, target, want string }{
		{"h200", "rtx-3090", "FP8 and TMA work here; compute capability 9.0, not 8.6; latency of HBM memory, not of GDDR; 50 MiB L2 of the whole GPU, not 6 MiB"},
		{"h200", "rtx-2060", "BF16, TF32, FP8 and TMA work here; compute capability 9.0, not 7.5; latency of HBM memory, not of GDDR; 50 MiB L2 of the whole GPU, not 3 MiB"},
		{"h200", "gtx-1080", "tensor cores and TMA work here; compute capability 9.0, not 6.1; latency of HBM memory, not of GDDR; 50 MiB L2 of the whole GPU, not 2 MiB"},
		{"a100-80gb", "rtx-4090", "no FP8 here; compute capability 8.0, not 8.9; latency of HBM memory, not of GDDR; 40 MiB L2 of the whole GPU, not 72 MiB"},
		{"h200", "rtx-5090", "no FP6 or FP4 here; compute capability 9.0, not 12.0; latency of HBM memory, not of GDDR; 50 MiB L2 of the whole GPU, not 96 MiB"},
		{"rtx-4090", "rtx-3060", "FP8 works here; compute capability 8.9, not 8.6; 72 MiB L2 of the whole GPU, not 3 MiB"},
		{"h200", "h100", ""},
	} {
		if got := strings.Join(fit.Limits(host(t, c.host), target(t, c.target), false), "; "); got != c.want {
			t.Errorf("%s on %s:\n got %s\nwant %s", c.target, c.host, got, c.want)
		}
	}
}
