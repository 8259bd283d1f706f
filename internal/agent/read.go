package agent

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
)

const mib = 1 << 20

// read is one look at one GPU.
func (d device) read() (resource.GPU, error) {
	gpu := resource.GPU{Index: d.index, UUID: d.uuid}
	for _, step := range []func(*resource.GPU) error{
		d.readIdentity, d.readClocks, d.readPower, d.readMemory, d.readMIG, d.readProcesses,
	} {
		if err := step(&gpu); err != nil {
			return gpu, err
		}
	}
	return gpu, nil
}

func (d device) readIdentity(gpu *resource.GPU) error {
	name, err := get(d, "nvmlDeviceGetName", d.GetName)
	if err != nil {
		return err
	}
	pci, err := get(d, "nvmlDeviceGetPciInfo_v3", d.GetPciInfo)
	if err != nil {
		return err
	}
	var major, minor int
	if err := d.call("nvmlDeviceGetCudaComputeCapability", func() (ret nvml.Return) {
		major, minor, ret = d.GetCudaComputeCapability()
		return ret
	}); err != nil {
		return err
	}
	cores, err := get(d, "nvmlDeviceGetNumGpuCores", d.GetNumGpuCores)
	if err != nil {
		return err
	}
	temperature, err := optional(d, "nvmlDeviceGetTemperature", func() (uint32, nvml.Return) {
		return d.GetTemperature(nvml.TEMPERATURE_GPU)
	})
	if err != nil {
		return err
	}
	gpu.PCI = text(pci.BusId[:])
	gpu.TemperatureC = int(temperature)
	gpu.Model.Name = name
	gpu.Model.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
	gpu.Model.SMs = cores / coresPerSM(major, minor)
	return nil
}

// coresPerSM is the number of FP32 lanes that NVML counts as cores (CUDA
// programming guide, arithmetic instructions by compute capability).
func coresPerSM(major, minor int) int {
	switch {
	case major == 6 && minor == 0, major == 7, major == 8 && minor == 0:
		return 64
	}
	return 128
}

func (d device) readClocks(gpu *resource.GPU) error {
	memory, err := get(d, "nvmlDeviceGetMaxClockInfo", func() (uint32, nvml.Return) { return d.GetMaxClockInfo(nvml.CLOCK_MEM) })
	if err != nil {
		return err
	}
	gpu.Model.ClocksMHz, err = get(d, "nvmlDeviceGetSupportedGraphicsClocks", func() ([]int, nvml.Return) {
		return supportedClocks(d.lib.path, d.uuid, memory)
	})
	if err != nil {
		return err
	}
	bits, err := optional(d, "nvmlDeviceGetMemoryBusWidth", d.GetMemoryBusWidth)
	if err != nil {
		return err
	}
	now, err := get(d, "nvmlDeviceGetClockInfo", func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_SM) })
	if err != nil {
		return err
	}
	reasons, err := optional(d, "nvmlDeviceGetCurrentClocksThrottleReasons", d.GetCurrentClocksThrottleReasons)
	if err != nil {
		return err
	}
	// Double data rate: two transfers a clock.
	gpu.Model.BandwidthGBs = math.Round(2 * float64(memory) * float64(bits) / 8 / 1000)
	gpu.SMClockMHz = int(now)
	gpu.Held = heldDown(reasons)
	return nil
}

// text reads a C string out of a fixed array.
func text[T int8 | uint8](array []T) string {
	var b strings.Builder
	for _, c := range array {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

func (d device) readPower(gpu *resource.GPU) error {
	limit, err := get(d, "nvmlDeviceGetPowerManagementLimit", d.GetPowerManagementLimit)
	if err != nil {
		return err
	}
	standard, err := get(d, "nvmlDeviceGetPowerManagementDefaultLimit", d.GetPowerManagementDefaultLimit)
	if err != nil {
		return err
	}
	var low, high uint32
	if err := d.call("nvmlDeviceGetPowerManagementLimitConstraints", func() (ret nvml.Return) {
		low, high, ret = d.GetPowerManagementLimitConstraints()
		return ret
	}); err != nil {
		return err
	}
	draw, err := optional(d, "nvmlDeviceGetPowerUsage", d.GetPowerUsage)
	if err != nil {
		return err
	}
	persistence, err := get(d, "nvmlDeviceGetPersistenceMode", d.GetPersistenceMode)
	if err != nil {
		return err
	}
	gpu.PowerMW, gpu.DrawMW = int(limit), int(draw)
	gpu.Model.PowerMinMW, gpu.Model.PowerDefaultMW, gpu.Model.PowerMaxMW = int(low), int(standard), int(high)
	gpu.Persistence = persistence == nvml.FEATURE_ENABLED
	return nil
}

func (d device) readMemory(gpu *resource.GPU) error {
	memory, err := get(d, "nvmlDeviceGetMemoryInfo", d.GetMemoryInfo)
	if err != nil {
		return err
	}
	gpu.Model.MemoryMiB, gpu.MemoryUsedMiB = int(memory.Total/mib), int(memory.Used/mib)
	return nil
}

func (d device) readProcesses(gpu *resource.GPU) error {
	running, err := optional(d, "nvmlDeviceGetComputeRunningProcesses_v3", d.GetComputeRunningProcesses)
	if err != nil {
		return err
	}
	for _, p := range running {
		process := resource.Process{PID: int(p.Pid)}
		// All ones is NVML's "not available".
		if p.UsedGpuMemory != math.MaxUint64 {
			process.MemoryMiB = int(p.UsedGpuMemory / mib)
		}
		if p.GpuInstanceId != math.MaxUint32 {
			id := int(p.GpuInstanceId)
			process.GPUInstance = &id
		}
		gpu.Processes = append(gpu.Processes, process)
	}
	slices.SortFunc(gpu.Processes, func(a, b resource.Process) int { return cmp.Compare(a.PID, b.PID) })
	return nil
}
