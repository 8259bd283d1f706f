package fit_test

import (
	"strings"
	"testing"

	"cosplay/internal/fit"
)

func TestLimits(t *testing.T) {
	for _, c := range []struct{ host, profile, target, want string }{
		{"h200", "1g.18gb", "rtx-3090", "FP8 and TMA work here; no NVENC, RT cores or graphics here; compute capability 9.0, not 8.6; latency of HBM memory, not of GDDR; 50 MiB L2 of the whole GPU, not 6 MiB"},
		{"h200", "", "rtx-2060", "BF16, TF32, FP8 and TMA work here; no NVENC or RT cores here; compute capability 9.0, not 7.5; latency of HBM memory, not of GDDR; 50 MiB L2 of the whole GPU, not 3 MiB"},
		{"h200", "1g.18gb", "gtx-1080", "tensor cores and TMA work here; no NVENC or graphics here; compute capability 9.0, not 6.1; latency of HBM memory, not of GDDR; 50 MiB L2 of the whole GPU, not 2 MiB"},
		{"h200", "1g.18gb", "gtx-1660", "tensor cores and TMA work here; no NVENC or graphics here; compute capability 9.0, not 7.5; latency of HBM memory, not of GDDR; 50 MiB L2 of the whole GPU, not 1.5 MiB"},
		{"a100-80gb", "3g.40gb", "rtx-4090", "no FP8, NVENC, RT cores or graphics here; compute capability 8.0, not 8.9; latency of HBM memory, not of GDDR; 40 MiB L2 of the whole GPU, not 72 MiB"},
		{"a100-80gb", "1g.10gb", "p100", "tensor cores work here; no NVENC, NVDEC or graphics here; slice = \"1g.10gb+me\" has NVDEC; compute capability 8.0, not 6.0; 40 MiB L2 of the whole GPU, not 4 MiB"},
		{"a100-80gb", "1g.10gb+me", "p100", "tensor cores work here; no NVENC or graphics here; compute capability 8.0, not 6.0; 40 MiB L2 of the whole GPU, not 4 MiB"},
		{"a100-80gb", "1g.20gb", "a30", "40 MiB L2 of the whole GPU, not 24 MiB"},
		{"a100-80gb", "1c.2g.20gb", "a30", "40 MiB L2 of the whole GPU, not 24 MiB"},
		{"a30", "1g.6gb", "a100-80gb", "no NVDEC here; slice = \"1g.6gb+me\" has NVDEC; 24 MiB L2 of the whole GPU, not 40 MiB"},
		{"h200", "", "rtx-5090", "no FP6, FP4, NVENC or RT cores here; compute capability 9.0, not 12.0; latency of HBM memory, not of GDDR; 50 MiB L2 of the whole GPU, not 96 MiB"},
		{"rtx-4090", "", "rtx-3060", "FP8 works here; compute capability 8.9, not 8.6; 72 MiB L2 of the whole GPU, not 3 MiB"},
		{"rtx-pro-6000-server", "1g.24gb", "l4", "FP6, FP4 and TMA work here; no graphics here; compute capability 12.0, not 8.9; 128 MiB L2 of the whole GPU, not 48 MiB"},
		{"rtx-pro-6000-server", "1g.24gb-me", "l4", "FP6, FP4 and TMA work here; no NVENC, NVDEC or graphics here; compute capability 12.0, not 8.9; 128 MiB L2 of the whole GPU, not 48 MiB"},
		{"rtx-pro-6000-server", "1g.24gb+gfx", "l4", "FP6, FP4 and TMA work here; compute capability 12.0, not 8.9; 128 MiB L2 of the whole GPU, not 48 MiB"},
		{"h200", "", "h100", ""},
		{"h200", "7g.141gb", "h100", ""},
	} {
		if got := strings.Join(fit.Limits(host(t, c.host), c.profile, target(t, c.target), false), "; "); got != c.want {
			t.Errorf("%s on %s %s:\n got %s\nwant %s", c.target, c.host, c.profile, got, c.want)
		}
	}
}
