package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/catalog"
	"cosplay/internal/hostfile"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// again exports what was read of a host, simulates the exported host and reads that.
func again(t *testing.T, h resource.Host) (before, after string) {
	t.Helper()
	data, err := hostfile.Encode(h, "test")
	if err != nil {
		t.Fatal(err)
	}
	exported, err := hostfile.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := sim.CreateLike(dir, exported, sim.Options{Seed: "another", Simulates: "rack.json"}); err != nil {
		t.Fatal(err)
	}
	client := New(Options{Library: sim.LibraryPath(dir)})
	defer client.Close()
	read(t, client) // what the driver forgets when its first client leaves
	_ = client.Close()
	second, err := hostfile.Encode(read(t, client), "test")
	if err != nil {
		t.Fatal(err)
	}
	return string(data), string(second)
}

// TestExportedHostReadsTheSame: of a host simulated from an export, the agent reads what it read of the exported one.
func TestExportedHostReadsTheSame(t *testing.T) {
	settings := map[string][][3]string{ // GPU, key, value
		"as created": nil,
		"settings": {{"0", "persistence", "on"}, {"0", "power-limit", "500"}, {"0", "compute-mode", "exclusive-process"}, {"1", "mig", "on"},
			{"2", "power-limit", "300"}, {"2", "process", "4711:100"}, {"3", "clock-lock", "1200"}, {"3", "persistence", "on"}},
		"processes": {{"0", "mig", "on"}, {"0", "slice", "1g.18gb 3"}, {"0", "slice", "3g.71gb 4"}, {"0", "process", "99:1024:10"}, {"2", "process", "100:5"}, {"2", "process", "101:6"}},
		"pending":   {{"0", "process", "4711:100"}, {"0", "mig-pending", "on"}},
		"old names": {{"1", "mig", "on"}, {"1", "slice", "1g.10gb 6"}, {"1", "uuid-format", "ids"}},
		"lost":      {{"0", "lost", "on"}, {"2", "lost", "RESET_REQUIRED"}},
		"all lost":  {{"0", "lost", "on"}, {"1", "lost", "on"}, {"2", "lost", "on"}, {"3", "lost", "on"}},
		"answers": {{"", "fault", "nvmlDeviceGetTemperature:0=NOT_SUPPORTED"}, {"", "fault", "nvmlDeviceGetMigMode@1:0=NOT_SUPPORTED"},
			{"", "fault", "nvmlDeviceGetSupportedGraphicsClocks@2:0=NOT_SUPPORTED"}, {"", "fault", "nvmlDeviceGetPowerManagementLimit@0:0=NO_PERMISSION"},
			{"", "fault", "nvmlDeviceGetPciInfo_v3@3:0=UNKNOWN"}, {"", "fault", "nvmlDeviceGetName@3:0=UNKNOWN"}, {"", "fault", "nvmlDeviceGetNumGpuCores@3:0=UNKNOWN"},
			{"", "fault", "nvmlDeviceGetUUID@2:0=NO_PERMISSION"}},
		"an old driver": {{"", "fault", "nvmlDeviceGetMemoryBusWidth=absent"}, {"", "fault", "nvmlDeviceGetCudaComputeCapability=absent"}, {"", "fault", "nvmlDeviceGetComputeRunningProcesses_v3=absent"}},
	}
	for name, changes := range settings {
		t.Run(name, func(t *testing.T) {
			host, client := newHost(t, Options{}, "h200", "a100-80gb", "l40s", "v100")
			for _, c := range changes {
				if err := changeHost(host, c[0], c[1], c[2]); err != nil {
					t.Fatal(err)
				}
			}
			before, after := again(t, read(t, client))
			if d := cmp.Diff(before, after); d != "" {
				t.Error(d)
			}
		})
	}
}

func changeHost(h *sim.Host, gpu, key, value string) error {
	index := 0
	_, _ = fmt.Sscan(gpu, &index)
	switch key {
	case "fault":
		f, err := sim.ParseFault(value)
		if err != nil {
			return err
		}
		return h.SetFault(f)
	case "slice":
		var (
			profile string
			start   int
		)
		if _, err := fmt.Sscan(value, &profile, &start); err != nil {
			return err
		}
		_, err := h.CreateSlice(index, profile, start)
		return err
	}
	return h.Set(index, key, value)
}

// TestExportOfComputeInstances: those that leave a part of their GPU instance to others are the same.
func TestExportOfComputeInstances(t *testing.T) {
	_, client := newHost(t, Options{}, "h200")
	gpu := read(t, client).GPUs[0].UUID
	if err := change(client, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateSlice(context.Background(), part(gpu, 1), resource.Need{SMs: 16, MemoryMiB: 33024}); err != nil {
		t.Fatal(err)
	}
	before, after := again(t, read(t, client))
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
}

// TestExportOfOtherHardware: what a simulated host of the catalog never reports.
func TestExportOfOtherHardware(t *testing.T) {
	model, err := catalog.HostModel("l40s")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(g *resource.GPU){
		"a virtual machine's PCI address": func(g *resource.GPU) { g.PCI = "00010000:00:1E.0" },
		"idle above the lowest clock":     func(g *resource.GPU) { g.SMClockMHz = 345 },
		"idle without a reason":           func(g *resource.GPU) { g.LowClockReason = false },
		"throttled": func(g *resource.GPU) {
			g.SMClockMHz, g.Processes = 1200, []resource.Process{{PID: 5, MemoryMiB: 100}}
		},
		"a limit without persistence":  func(g *resource.GPU) { g.PowerMW = g.Model.PowerMinMW },
		"a mode without persistence":   func(g *resource.GPU) { g.ComputeMode = resource.Prohibited },
		"a bandwidth of no common bus": func(g *resource.GPU) { g.Model.BandwidthGBs = 5701 },
		"an unknown product":           func(g *resource.GPU) { g.Model.Name, g.Model.ComputeCapability, g.Model.SMs = "NVIDIA Z1", "15.0", 77 },
	} {
		t.Run(name, func(t *testing.T) {
			g := resource.GPU{UUID: "GPU-1", PCI: "00000000:19:00.0", Model: model, PowerMW: model.PowerDefaultMW, SMClockMHz: model.ClocksMHz[0], LowClockReason: true,
				Degraded: []resource.Degradation{{Feature: resource.FeatureMIG, Call: "nvmlDeviceGetMigMode", Code: 3, Message: "Not Supported"}}}
			g.Model.L2MiB, g.Model.FP32PerSM, g.Model.TensorPerSM = 0, 0, 0 // the catalog's
			change(&g)
			before, after := again(t, resource.Host{Driver: "570.1", GPUs: []resource.GPU{g}})
			if d := cmp.Diff(before, after); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestExportOfTooManyAnswers: a host with more different failures than a simulated host can have is refused, and nothing
// is written.
func TestExportOfTooManyAnswers(t *testing.T) {
	_, client := newHost(t, Options{}, "h200", "h200")
	h := read(t, client)
	for _, c := range Calls()[8:28] {
		h.GPUs[1].Degraded = append(h.GPUs[1].Degraded, resource.Degradation{Feature: "x", Call: c.Name, Code: 3})
	}
	dir := filepath.Join(t.TempDir(), "host")
	err := sim.CreateLike(dir, h, sim.Options{})
	if err == nil || !strings.Contains(err.Error(), "failed: a simulated host has room for 16 faults") || sim.Is(dir) {
		t.Errorf("the error is %v", err)
	}
}
