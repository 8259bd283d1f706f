package sim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
)

func TestIdentity(t *testing.T) {
	start(t, h200, h200, l40s)
	count, ret := library.DeviceGetCount()
	must(t, ret)
	equal(t, "count", count, 3)

	d := gpu(t, 1)
	name, ret := d.GetName()
	must(t, ret)
	equal(t, "name", name, "NVIDIA H200")
	major, minor, ret := d.GetCudaComputeCapability()
	must(t, ret)
	equal(t, "compute capability", [2]int{major, minor}, [2]int{9, 0})
	cores, ret := d.GetNumGpuCores()
	must(t, ret)
	equal(t, "cores", cores, 132*128)
	index, ret := d.GetIndex()
	must(t, ret)
	equal(t, "index", index, 1)
	pci, ret := d.GetPciInfo()
	must(t, ret)
	equal(t, "bus", text(pci.BusId[:]), "00000000:3B:00.0")
	version, ret := library.SystemGetDriverVersion()
	must(t, ret)
	equal(t, "driver", version, "580.159.04")
	cuda, ret := library.SystemGetCudaDriverVersion()
	must(t, ret)
	equal(t, "CUDA", cuda, 13000)
	equal(t, "error text", library.ErrorString(nvml.ERROR_IN_USE), "In use by another client")
}

func text(zeroed []uint8) string {
	var b strings.Builder
	for _, c := range zeroed {
		if c != 0 {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func TestHandles(t *testing.T) {
	start(t, h200, l40s)
	d := gpu(t, 1)
	uuid, ret := d.GetUUID()
	must(t, ret)
	serial, ret := d.GetSerial()
	must(t, ret)
	byName := map[string]func() (nvml.Device, nvml.Return){
		"UUID":   func() (nvml.Device, nvml.Return) { return library.DeviceGetHandleByUUID(uuid) },
		"serial": func() (nvml.Device, nvml.Return) { return library.DeviceGetHandleBySerial(serial) },
		"long":   func() (nvml.Device, nvml.Return) { return library.DeviceGetHandleByPciBusId("00000000:3B:00.0") },
		"short":  func() (nvml.Device, nvml.Return) { return library.DeviceGetHandleByPciBusId("0000:3b:00.0") },
		"bare":   func() (nvml.Device, nvml.Return) { return library.DeviceGetHandleByPciBusId("3b:00.0") },
	}
	for what, find := range byName {
		found, ret := find()
		must(t, ret)
		equal(t, "GPU by "+what, found, d)
	}
	_, ret = library.DeviceGetHandleByUUID("GPU-nothing")
	want(t, ret, nvml.ERROR_NOT_FOUND)
	_, ret = library.DeviceGetHandleByPciBusId("0001:3b:00.0")
	want(t, ret, nvml.ERROR_NOT_FOUND)
	_, ret = library.DeviceGetHandleByIndex(2)
	want(t, ret, nvml.ERROR_INVALID_ARGUMENT)
}

// Bus width and memory clock give the bandwidth of the model.
func TestBandwidth(t *testing.T) {
	start(t, h200, a100, a30, l40s)
	for i, gbs := range []float64{4800, 2039, 933, 864} {
		d := gpu(t, i)
		bus, ret := d.GetMemoryBusWidth()
		must(t, ret)
		mhz, ret := d.GetMaxClockInfo(nvml.CLOCK_MEM)
		must(t, ret)
		if got := 2 * float64(mhz) * float64(bus) / 8 / 1000; got < gbs*0.9995 || got > gbs*1.0005 {
			t.Errorf("GPU %d: %d bit at %d MHz give %.1f GB/s, want %.0f", i, bus, mhz, got, gbs)
		}
	}
}

func TestMemory(t *testing.T) {
	h := start(t, h200)
	set(t, h, 0, "process", "4711:2048")
	m, ret := gpu(t, 0).GetMemoryInfo_v2()
	must(t, ret)
	equal(t, "total", m.Total, 143771<<20)
	equal(t, "used", m.Used, 2048<<20)
	equal(t, "sum", m.Used+m.Free+m.Reserved, m.Total)
	old, ret := gpu(t, 0).GetMemoryInfo()
	must(t, ret)
	equal(t, "sum without reserved", old.Used+old.Free, old.Total)
	equal(t, "free", old.Free, m.Free)
}

func TestProcesses(t *testing.T) {
	h := start(t, h200)
	d := gpu(t, 0)
	set(t, h, 0, "process", "4711:2048")
	set(t, h, 0, "process", "4712:10")
	infos, ret := d.GetComputeRunningProcesses()
	must(t, ret)
	equal(t, "processes", len(infos), 2)
	equal(t, "pid", infos[0].Pid, 4711)
	equal(t, "memory", infos[0].UsedGpuMemory, 2048<<20)
	equal(t, "GPU instance", infos[0].GpuInstanceId, 0xffffffff)
	set(t, h, 0, "process", "4711:none")
	infos, ret = d.GetComputeRunningProcesses()
	must(t, ret)
	equal(t, "processes left", len(infos), 1)
	graphics, ret := d.GetGraphicsRunningProcesses()
	must(t, ret)
	equal(t, "graphics processes", len(graphics), 0)
}

func TestClockLock(t *testing.T) {
	h := start(t, h200)
	d := gpu(t, 0)
	expect := func(mhz uint32, idle bool) {
		t.Helper()
		got, ret := d.GetClockInfo(nvml.CLOCK_SM)
		must(t, ret)
		equal(t, "SM clock", got, mhz)
		reasons, ret := d.GetCurrentClocksEventReasons()
		must(t, ret)
		equal(t, "idle", reasons == nvml.ClocksEventReasonGpuIdle, idle)
	}
	expect(345, true)
	must(t, d.SetGpuLockedClocks(1200, 1575))
	expect(1575, true)
	set(t, h, 0, "process", "4711:1")
	expect(1575, false)
	must(t, d.SetGpuLockedClocks(1580, 1580)) // not on the grid
	expect(1575, false)
	must(t, d.ResetGpuLockedClocks())
	expect(1980, false)
	want(t, d.SetGpuLockedClocks(1500, 1200), nvml.ERROR_INVALID_ARGUMENT)
	want(t, d.SetMemoryLockedClocks(1000, 1000), nvml.ERROR_NOT_SUPPORTED)
}

// go-nvml asks for the clocks with an array of no room, so it learns their
// number only; nvidia-smi reads them all in its own test.
func TestClockGrid(t *testing.T) {
	start(t, h200)
	d := gpu(t, 0)
	n, _, ret := d.GetSupportedMemoryClocks()
	want(t, ret, nvml.ERROR_INSUFFICIENT_SIZE)
	equal(t, "memory clocks", n, 1)
	n, _, ret = d.GetSupportedGraphicsClocks(3125)
	want(t, ret, nvml.ERROR_INSUFFICIENT_SIZE)
	equal(t, "clocks", n, len(h200.ClocksMHz))
	_, _, ret = d.GetSupportedGraphicsClocks(3126)
	want(t, ret, nvml.ERROR_NOT_FOUND)
	low, high, ret := d.GetMinMaxClockOfPState(nvml.CLOCK_SM, nvml.PSTATE_0)
	must(t, ret)
	equal(t, "range", [2]uint32{low, high}, [2]uint32{345, 1980})
}

func TestPowerLimit(t *testing.T) {
	start(t, h200)
	d := gpu(t, 0)
	low, high, ret := d.GetPowerManagementLimitConstraints()
	must(t, ret)
	equal(t, "range", [2]uint32{low, high}, [2]uint32{200_000, 700_000})
	for _, mw := range []uint32{0, 199_999, 700_001} {
		want(t, d.SetPowerManagementLimit(mw), nvml.ERROR_INVALID_ARGUMENT)
	}
	for _, mw := range []uint32{200_000, 700_000, 450_000} {
		must(t, d.SetPowerManagementLimit(mw))
		got, ret := d.GetPowerManagementLimit()
		must(t, ret)
		equal(t, "limit", got, mw)
	}
	def, ret := d.GetPowerManagementDefaultLimit()
	must(t, ret)
	equal(t, "default", def, 700_000)
	fields := []nvml.FieldValue{{FieldId: nvml.FI_DEV_POWER_REQUESTED_LIMIT}, {FieldId: nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON}}
	must(t, d.GetFieldValues(fields))
	equal(t, "limit as a field", [4]byte(fields[0].Value[:4]), [4]byte{0xd0, 0xdd, 0x06, 0}) // 450000
	equal(t, "unknown field", nvml.Return(fields[1].NvmlReturn), nvml.ERROR_NOT_SUPPORTED)
}

// Without persistence the driver forgets limit and lock with its last client.
func TestPersistence(t *testing.T) {
	h := start(t, h200)
	change := func(persistence nvml.EnableState) {
		d := gpu(t, 0)
		must(t, d.SetPersistenceMode(persistence))
		must(t, d.SetPowerManagementLimit(300_000))
		must(t, d.SetGpuLockedClocks(1200, 1200))
		must(t, library.Shutdown())
	}
	change(nvml.FEATURE_ENABLED)
	shown, err := h.Show()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "kept limit", shown.GPUs[0].PowerMW, 300_000)
	equal(t, "kept lock", shown.GPUs[0].ClockLockMHz, 1200)

	must(t, library.Init())
	change(nvml.FEATURE_DISABLED)
	shown, _ = h.Show()
	equal(t, "forgotten limit", shown.GPUs[0].PowerMW, 700_000)
	equal(t, "forgotten lock", shown.GPUs[0].ClockLockMHz, 0)
	must(t, library.Init())
}

func TestLostGPU(t *testing.T) {
	h := start(t, h200, h200)
	d := gpu(t, 0)
	set(t, h, 0, "lost", "on")
	_, ret := d.GetName()
	want(t, ret, nvml.ERROR_GPU_IS_LOST)
	_, ret = library.DeviceGetHandleByIndex(0)
	want(t, ret, nvml.ERROR_GPU_IS_LOST)
	_, ret = gpu(t, 1).GetName()
	must(t, ret)
	set(t, h, 0, "lost", "off")
	_, ret = d.GetName()
	must(t, ret)
}

func TestEveryGPUHasItsUUID(t *testing.T) {
	uuids := func() []string {
		var all []string
		for i := range 16 {
			uuid, ret := gpu(t, i).GetUUID()
			must(t, ret)
			all = append(all, uuid)
		}
		return all
	}
	models := slices.Repeat([]resource.Model{h200}, 16)
	start(t, models...)
	before := uuids()
	if slices.Sort(before); len(slices.Compact(slices.Clone(before))) != 16 {
		t.Errorf("two GPUs share a UUID: %v", before)
	}
	must(t, library.Shutdown())
	start(t, models...)
	after := uuids()
	if slices.Sort(after); !slices.Equal(before, after) {
		t.Errorf("the same seed gave other UUIDs: %v and %v", before, after)
	}
}
