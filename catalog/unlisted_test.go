package catalog

import (
	"strings"
	"testing"

	"cosplay/internal/resource"
)

func TestUnlisted(t *testing.T) {
	model := func(name, capability string) resource.Model {
		m, _ := Complete(resource.Model{Name: name, ComputeCapability: capability, SMs: 160, MemoryMiB: 196608, BandwidthGBs: 8000, ClocksMHz: []int{300, 2100}})
		return m
	}
	if !Listed(model("NVIDIA H200", "9.0")) || Listed(model("NVIDIA X900", "9.0")) {
		t.Error("Listed does not follow the catalog")
	}
	gpu := resource.GPU{Index: 3, MIGCapable: true, Model: model("NVIDIA X900", "10.0")}
	for _, c := range []struct {
		change func(*resource.GPU)
		says   string
	}{
		{func(*resource.GPU) {}, "160 SMs, 196608 MiB, 8000 GB/s, SM clocks from 300 to 2100 MHz.\nIts rates are those of compute capability 10.0: 256 FP32 and 8192 tensor operations"},
		{func(*resource.GPU) {}, "nvidia-smi -i 3 -mig 1"},
		{func(g *resource.GPU) { g.Model = model("NVIDIA X900", "14.0") }, `cosplay does not know compute capability "14.0": it assumes 256 FP32`},
		{func(g *resource.GPU) { g.Model.BandwidthGBs = 0 }, "196608 MiB, SM clocks"},
		{func(g *resource.GPU) { g.Model.BandwidthGBs = 0 }, "its bandwidth are unknown"},
	} {
		g := gpu
		c.change(&g)
		if got := Unlisted(g); !strings.Contains(got, c.says) {
			t.Errorf("%s\nlacks %s", got, c.says)
		}
	}
	gpu.MIGCapable = false
	if got := Unlisted(gpu); strings.Contains(got, "MIG") {
		t.Errorf("a GPU without MIG: %s", got)
	}
}
