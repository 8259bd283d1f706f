package agent

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// TestActivity: a GPU instance with a program is busy. What the driver does not say is unknown, and the rest is read.
func TestActivity(t *testing.T) {
	host, client := newHost(t, Options{}, "h200", "a100-sxm4-80gb")
	ctx := context.Background()
	var of []resource.GPUInstance
	for i, at := range []struct {
		profile string
		sms     int
		slots   []int
	}{{"1g.18gb", 16, []int{0, 2}}, {"1g.10gb", 14, []int{0}}} {
		gpu := read(t, client).GPUs[i]
		if err := change(client, gpu.UUID, resource.MIGMode, resource.On); err != nil {
			t.Fatal(err)
		}
		for _, slot := range at.slots {
			slice, err := client.CreateSlice(ctx, resource.Slice{GPU: gpu.UUID, Profile: at.profile, Start: slot, Size: 1}, resource.Need{SMs: at.sms})
			if err != nil {
				t.Fatal(err)
			}
			of = append(of, resource.GPUInstance{GPU: gpu.UUID, ID: slice.GPUInstance})
		}
	}
	if err := host.Set(0, "process", fmt.Sprintf("4711001:100:%d", of[1].ID)); err != nil {
		t.Fatal(err)
	}
	of = append(of, resource.GPUInstance{GPU: of[0].GPU, ID: 77}, resource.GPUInstance{GPU: "GPU-none", ID: 1})
	wanted := func(want ...int) {
		t.Helper()
		if got, err := client.Activity(ctx, of); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	wanted(0, 100, -1, -1, -1)
	for _, call := range []string{"nvmlGpmMetricsGet", "nvmlGpmMigSampleGet", "nvmlGpmSampleAlloc"} {
		if err := host.SetFault(sim.Fault{Function: call, Action: sim.Answer, Code: 3}); err != nil {
			t.Fatal(err)
		}
		wanted(-1, -1, -1, -1, -1)
		if err := host.ClearFaults(); err != nil {
			t.Fatal(err)
		}
	}
	wanted(0, 100, -1, -1, -1)
	if got, err := client.Activity(ctx, nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}
