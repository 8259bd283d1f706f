package agent

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

func part(gpu string, start int) resource.Slice {
	return resource.Slice{GPU: gpu, Profile: "1c.2g.35gb", Start: 2, Size: 2, ComputeStart: start}
}

func names(all []resource.LiveSlice) (names []string) {
	for _, s := range all {
		names = append(names, s.String())
	}
	return names
}

// TestComputeInstancesOfOneGPUInstance: each is created and destroyed alone. The GPU instance comes with the first and
// goes with the last.
func TestComputeInstancesOfOneGPUInstance(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	ctx := context.Background()
	gpu := read(t, client).GPUs[0].UUID
	if err := change(client, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	first, err := client.CreateSlice(ctx, part(gpu, 1), resource.Need{SMs: 16, MemoryMiB: 33024})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateSlice(ctx, part(gpu, 0), resource.Need{SMs: 16}); err == nil {
		t.Error("a GPU instance was created where another one is")
	}
	second, err := client.CreateSlice(ctx, part(gpu, 0), resource.Need{SMs: 16, Beside: first.UUID})
	if err != nil {
		t.Fatal(err)
	}
	if first.GPUInstance != second.GPUInstance || first.ComputeInstance == second.ComputeInstance || first.UUID == second.UUID {
		t.Errorf("created %+v and %+v", first, second)
	}
	if got, want := names(read(t, client).GPUs[0].Slices), []string{"1c.2g.35gb, slot 2.0", "1c.2g.35gb, slot 2.1"}; !slices.Equal(got, want) {
		t.Errorf("the GPU has %v, want %v", got, want)
	}
	if err := client.DestroySlice(ctx, first); err != nil {
		t.Fatal(err)
	}
	if left := read(t, client).GPUs[0].Slices; len(left) != 1 || left[0].UUID != second.UUID {
		t.Errorf("after the first is destroyed there are %+v", left)
	}
	// The driver removes the compute instance, and not the GPU instance.
	if err := host.SetFault(sim.Fault{Function: "nvmlGpuInstanceDestroy", Nth: 1, Action: sim.Answer, Code: 19}); err != nil {
		t.Fatal(err)
	}
	if err := client.DestroySlice(ctx, second); err != nil {
		t.Fatal(err)
	}
	if left := read(t, client).GPUs[0].Slices; len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

// TestComputeInstanceIsRefused: where the plan is out of date, nothing is created and nothing else is touched.
func TestComputeInstanceIsRefused(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	ctx := context.Background()
	gpu := read(t, client).GPUs[0].UUID
	if err := change(client, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	first, err := client.CreateSlice(ctx, part(gpu, 0), resource.Need{SMs: 16})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := part(gpu, 1)
	elsewhere.Start = 4
	for what, try := range map[string]struct {
		at   resource.Slice
		need resource.Need
		want string
	}{
		"beside a lost one":     {part(gpu, 1), resource.Need{SMs: 16, Beside: "MIG-gone"}, "no longer has"},
		"in another instance":   {elsewhere, resource.Need{SMs: 16, Beside: first.UUID}, "no longer has"},
		"where one is":          {part(gpu, 0), resource.Need{SMs: 16, Beside: first.UUID}, "Insufficient Resources"},
		"with other SMs":        {part(gpu, 1), resource.Need{SMs: 20, Beside: first.UUID}, "has 16 SMs"},
		"of too little memory":  {part(gpu, 1), resource.Need{SMs: 16, MemoryMiB: 99999, Beside: first.UUID}, "needs 99999 MiB"},
		"with other SMs, first": {elsewhere, resource.Need{SMs: 20}, "has 16 SMs"},
	} {
		if _, err := client.CreateSlice(ctx, try.at, try.need); err == nil || !strings.Contains(err.Error(), try.want) {
			t.Errorf("%s: %v, want %q", what, err, try.want)
		}
	}
	if err := host.SetFault(sim.Fault{Function: "nvmlGpuInstanceCreateComputeInstanceWithPlacement", Nth: 1, Action: sim.Answer, Code: int(nvml.ERROR_NOT_SUPPORTED)}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateSlice(ctx, part(gpu, 1), resource.Need{SMs: 16, Beside: first.UUID}); err == nil {
		t.Error("no error without the call")
	}
	if left := read(t, client).GPUs[0].Slices; len(left) != 1 || left[0].UUID != first.UUID {
		t.Errorf("left: %+v", left)
	}
	if g := read(t, client).GPUs[0]; g.Without(resource.FeatureMIG) {
		t.Error("MIG is given up because of one call that only parts of GPU instances need")
	}
	if err := host.SetFault(sim.Fault{Function: "nvmlGpuInstanceCreateComputeInstanceWithPlacement", Action: sim.Absent}); err != nil {
		t.Fatal(err)
	}
	client.Close() // the next child opens the library again
	if g := read(t, client).GPUs[0]; !g.Without(resource.FeatureParts) || g.Without(resource.FeatureMIG) || len(g.Slices) != 1 {
		t.Errorf("a library without the call: %+v", g.Degraded)
	}
}
