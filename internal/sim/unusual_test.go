package sim_test

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/sim"
)

// TestFaultOfOneGPU checks that calls about other GPUs are not affected, also if a call takes an index or a UUID
// instead of a handle.
func TestFaultOfOneGPU(t *testing.T) {
	h := start(t, h200, h200)
	first, second := gpu(t, 0), gpu(t, 1)
	uuid, ret := second.GetUUID()
	must(t, ret)
	setFault(t, h, "nvmlDeviceGetNumGpuCores@1:0=NOT_SUPPORTED")
	setFault(t, h, "nvmlDeviceGetHandleByIndex@1:0=999")
	setFault(t, h, "nvmlDeviceGetHandleByUUID@1:0=NO_PERMISSION")
	_, ret = first.GetNumGpuCores()
	must(t, ret)
	_, ret = second.GetNumGpuCores()
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = library.DeviceGetHandleByIndex(0)
	must(t, ret)
	_, ret = library.DeviceGetHandleByIndex(1)
	want(t, ret, nvml.ERROR_UNKNOWN)
	_, ret = library.DeviceGetHandleByUUID(uuid)
	want(t, ret, nvml.ERROR_NO_PERMISSION)
	shown, err := h.Show()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "fault", fmt.Sprint(shown.Faults[0].Function, "@", *shown.Faults[0].GPU, ":", shown.Faults[0].Nth, "=", shown.Faults[0].Code), "nvmlDeviceGetNumGpuCores@1:0=3")
	if err := h.SetFault(parse(t, "nvmlDeviceGetName@2=999")); err == nil {
		t.Error("a fault of a GPU that the host does not have was set")
	}
}

// TestAbsentFunction checks that the library does not export the function until the faults are removed, also after
// the project was moved.
func TestAbsentFunction(t *testing.T) {
	create(t, h200)
	h := open(t)
	exported := func() bool {
		t.Helper()
		file, err := elf.Open(filepath.Join(dir, "libnvidia-ml.so.1"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		symbols, err := file.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "other function", slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == "nvmlDeviceGetCount" }), true)
		return slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == "nvmlDeviceGetCount_v2" })
	}
	equal(t, "exported at first", exported(), true)
	setFault(t, h, "nvmlDeviceGetCount_v2=absent")
	equal(t, "exported with the fault", exported(), false)
	if err := sim.Relocate(dir); err != nil {
		t.Fatal(err)
	}
	equal(t, "exported after a move", exported(), false)
	if err := h.ClearFaults(); err != nil {
		t.Fatal(err)
	}
	equal(t, "exported again", exported(), true)
	for _, s := range []string{"nvmlDeviceGetCount_v2@0=absent", "nvmlDeviceGetCoun=absent"} {
		if f, err := sim.ParseFault(s); err == nil {
			t.Errorf("%s is %+v", s, f)
		}
	}
}

// TestGPUThatAnswersOneCode checks a GPU for which every call returns one code.
func TestGPUThatAnswersOneCode(t *testing.T) {
	h := start(t, h200, h200)
	d := gpu(t, 0)
	for value, code := range map[string]nvml.Return{"on": nvml.ERROR_GPU_IS_LOST, "RESET_REQUIRED": nvml.ERROR_RESET_REQUIRED, "999": nvml.ERROR_UNKNOWN, "off": nvml.SUCCESS} {
		set(t, h, 0, "lost", value)
		_, ret := d.GetName()
		want(t, ret, code)
		_, ret = library.DeviceGetHandleByIndex(0)
		want(t, ret, code)
		_, ret = library.DeviceGetHandleByIndex(1)
		must(t, ret)
	}
	if err := h.Set(0, "lost", "77"); err == nil {
		t.Error("there is no code 77")
	}
}

// TestPowerStep: the driver rounds a limit down, but not below what it accepts.
func TestPowerStep(t *testing.T) {
	h := start(t, h200)
	d := gpu(t, 0)
	before := state(t)
	set(t, h, 0, "power-step", "7")
	for asked, got := range map[uint32]uint32{322_000: 322_000, 323_000: 322_000, 328_999: 322_000, 200_000: 200_000} {
		must(t, d.SetPowerManagementLimit(asked))
		now, ret := d.GetPowerManagementLimit()
		must(t, ret)
		equal(t, "power limit", now, got)
	}
	set(t, h, 0, "power-step", "none")
	must(t, d.SetPowerManagementLimit(700_000))
	sameState(t, before)
}

func TestPciInfoExt(t *testing.T) {
	start(t, h200, h200)
	d := gpu(t, 1)
	info, ret := d.GetPciInfoExt()
	must(t, ret)
	plain, ret := d.GetPciInfo()
	must(t, ret)
	equal(t, "bus", text(info.BusId[:]), text(plain.BusId[:]))
	equal(t, "device", info.PciDeviceId, plain.PciDeviceId)
	equal(t, "class", [2]uint32{info.BaseClass, info.SubClass}, [2]uint32{3, 2})
}
