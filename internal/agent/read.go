//go:build cgo && linux

package agent

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

const mib = 1 << 20

// read reads one GPU. What the driver does not offer is a degradation; any other failure is an error.
func (d device) read() (resource.GPU, error) {
	gpu := resource.GPU{Index: d.index, UUID: d.uuid}
	steps := []func(*resource.GPU) error{
		d.readName, d.readPCI, d.readCapability, d.readCores, d.readMemory, d.readBandwidth, d.readClockList, d.readLockable,
		d.readClock, d.readThrottle, d.readPower, d.readDraw,
	}
	for s, driver := range drivers {
		if driver.read != nil && s != int(resource.MIGMode) && s != int(resource.PowerLimit) { // which are read before and after
			steps = append(steps, func(gpu *resource.GPU) error { return driver.read(d, gpu) })
		}
	}
	for _, step := range append(steps, d.readTemperature, d.readMIG, d.readParts, d.readUtilization, d.readProcesses) {
		err := step(&gpu)
		if err == nil {
			continue
		}
		lacks, is := degradation(err)
		if !is {
			return gpu, err
		}
		if !slices.ContainsFunc(gpu.Degraded, func(d resource.Degradation) bool { return d.Feature == lacks.Feature }) {
			gpu.Degraded = append(gpu.Degraded, lacks)
		}
	}
	return gpu, nil
}

func (d device) readName(gpu *resource.GPU) (err error) {
	gpu.Model.Name, err = get(d, "nvmlDeviceGetName", d.GetName)
	return err
}

// constants are what several readings need of a GPU. They are asked once.
type constants struct {
	pci        func() (nvml.PciInfo, error)
	capability func() ([2]int, error) // major, minor
}

func (d device) ask() constants {
	return constants{
		sync.OnceValues(func() (nvml.PciInfo, error) { return get(d, "nvmlDeviceGetPciInfo_v3", d.GetPciInfo) }),
		sync.OnceValues(func() ([2]int, error) {
			major, minor, err := get2(d, "nvmlDeviceGetCudaComputeCapability", d.GetCudaComputeCapability)
			return [2]int{major, minor}, err
		}),
	}
}

func (d device) readPCI(gpu *resource.GPU) error {
	pci, err := d.pci()
	if err == nil {
		gpu.PCI = text(pci.BusId[:])
	}
	return err
}

func (d device) readCapability(gpu *resource.GPU) error {
	version, err := d.capability()
	if err == nil {
		gpu.Model.ComputeCapability = fmt.Sprintf("%d.%d", version[0], version[1])
	}
	return err
}

func (d device) readCores(gpu *resource.GPU) error {
	cores, err := get(d, "nvmlDeviceGetNumGpuCores", d.GetNumGpuCores)
	if err != nil {
		return err
	}
	version, err := d.capability() // without it the SMs cannot be computed from the cores
	if err == nil {
		gpu.Model.SMs = cores / resource.CoresPerSM(version[0], version[1])
	}
	return err
}

func (d device) memoryClock() (uint32, error) {
	return get(d, "nvmlDeviceGetMaxClockInfo", func() (uint32, nvml.Return) { return d.GetMaxClockInfo(nvml.CLOCK_MEM) })
}

func (d device) readBandwidth(gpu *resource.GPU) error {
	memory, err := d.memoryClock()
	if err != nil {
		return err
	}
	bits, err := get(d, "nvmlDeviceGetMemoryBusWidth", d.GetMemoryBusWidth)
	if err == nil { // double data rate: two transfers a clock
		gpu.Model.BandwidthGBs = math.Round(2 * float64(memory) * float64(bits) / 8 / 1000)
	}
	return err
}

func (d device) readClockList(gpu *resource.GPU) (err error) {
	gpu.Model.ClocksMHz, err = remembered(d.lib.clocks, d.board(*gpu, false), d.clockList)
	return err
}

// remembered reads a value once for a key, unless the key is empty.
func remembered[K comparable, V any](values map[K]V, key K, read func() (V, error)) (V, error) {
	if value, known := values[key]; known {
		return value, nil
	}
	value, err := read()
	if none := *new(K); err == nil && key != none {
		values[key] = value
	}
	return value, err
}

// A board is a kind of GPU, all of which have the same clocks and, in the same mode, the same profiles. A reading of a
// host asks one of them. Before it creates a slice, the agent reads the profiles of the GPU itself.
type board struct {
	device, subsystem uint32 // of PCI
	name              string
	memoryMiB         int
	mig               bool
}

// board is that of a GPU whose name and memory have been read; empty if it is not known.
func (d device) board(gpu resource.GPU, mig bool) board {
	pci, err := d.pci()
	if err != nil || gpu.Model.MemoryMiB == 0 || pci.PciDeviceId == 0 {
		return board{}
	}
	return board{pci.PciDeviceId, pci.PciSubSystemId, gpu.Model.Name, gpu.Model.MemoryMiB, mig}
}

// readLockable reports that a GPU before Volta has no clock locks, as NVML's manual says. Nothing but an attempt would
// show it.
func (d device) readLockable(gpu *resource.GPU) error {
	if version, err := d.capability(); err == nil && version[0] < volta {
		return &Error{Call: "nvmlDeviceSetGpuLockedClocks", GPU: d.name, Code: int(nvml.ERROR_NOT_SUPPORTED), Message: "the GPU is older than Volta and has no clock locks"}
	}
	return nil
}

const volta = 7 // in the compute capability

func (d device) smClock() (mhz uint32, err error) {
	return get(d, "nvmlDeviceGetClockInfo", func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_SM) })
}

// readClock reads the SM clock. An unknown clock, like one that is held down, proves nothing.
func (d device) readClock(gpu *resource.GPU) error {
	now, err := d.smClock()
	gpu.SMClockMHz, gpu.LowClockReason = int(now), err != nil
	return err
}

func (d device) readThrottle(gpu *resource.GPU) error {
	reasons, err := get(d, "nvmlDeviceGetCurrentClocksThrottleReasons", d.GetCurrentClocksThrottleReasons)
	gpu.LowClockReason = gpu.LowClockReason || err != nil || heldDown(reasons)
	return err
}

func (d device) readTemperature(gpu *resource.GPU) error {
	degrees, err := get(d, "nvmlDeviceGetTemperature", func() (uint32, nvml.Return) { return d.GetTemperature(nvml.TEMPERATURE_GPU) })
	gpu.TemperatureC = int(degrees)
	return err
}

// readUtilization reads how busy a GPU is. One in MIG mode does not say so, and a driver need not.
func (d device) readUtilization(gpu *resource.GPU) error {
	if gpu.MIG {
		return nil
	}
	rates, err := get(d, "nvmlDeviceGetUtilizationRates", d.GetUtilizationRates)
	switch {
	case err == nil:
		percent := int(rates.Gpu)
		gpu.UtilizationPercent = &percent
	case unavailable(err):
		return nil
	}
	return err
}

// text is the string of C in an array.
func text[T int8 | uint8](array []T) string {
	bytes := prose.Each(array, func(c T) byte { return byte(c) })
	before, _, _ := strings.Cut(string(bytes), "\x00")
	return before
}

func (d device) powerRange() (lowMW, highMW uint32, err error) {
	return get2(d, "nvmlDeviceGetPowerManagementLimitConstraints", d.GetPowerManagementLimitConstraints)
}

// readPower reads the limit with its range: cosplay needs both to manage the limit.
func (d device) readPower(gpu *resource.GPU) error {
	limit, err := get(d, "nvmlDeviceGetPowerManagementLimit", d.GetPowerManagementLimit)
	if err != nil {
		return err
	}
	standard, err := get(d, "nvmlDeviceGetPowerManagementDefaultLimit", d.GetPowerManagementDefaultLimit)
	if err != nil {
		return err
	}
	low, high, err := d.powerRange()
	if err != nil {
		return err
	}
	gpu.PowerMW = int(limit)
	gpu.Model.PowerMinMW, gpu.Model.PowerDefaultMW, gpu.Model.PowerMaxMW = int(low), int(standard), int(high)
	return nil
}

func (d device) readDraw(gpu *resource.GPU) error {
	draw, err := get(d, "nvmlDeviceGetPowerUsage", d.GetPowerUsage)
	gpu.DrawMW = int(draw)
	return err
}

func (d device) readMemory(gpu *resource.GPU) error {
	memory, err := get(d, "nvmlDeviceGetMemoryInfo", d.GetMemoryInfo)
	gpu.Model.MemoryMiB, gpu.MemoryUsedMiB = int(memory.Total/mib), int(memory.Used/mib)
	return err
}

func (d device) readProcesses(gpu *resource.GPU) error {
	running, err := get(d, "nvmlDeviceGetComputeRunningProcesses_v3", d.GetComputeRunningProcesses)
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
		if p.ComputeInstanceId != math.MaxUint32 && process.GPUInstance != nil {
			id := int(p.ComputeInstanceId)
			process.ComputeInstance = &id
		}
		identify(&process, procRoot)
		gpu.Processes = append(gpu.Processes, process)
	}
	slices.SortFunc(gpu.Processes, func(a, b resource.Process) int { return cmp.Compare(a.PID, b.PID) })
	return nil
}

// sampleClock reads the SM clock of one GPU, and whether something other than a lock holds
// it down. It is called many times a second.
func (l *nvmlLibrary) sampleClock(gpu string) (*resource.ClockSample, error) {
	d, err := l.device(gpu)
	if err != nil {
		return nil, err
	}
	var now resource.GPU
	if err := d.readClock(&now); err != nil {
		return nil, err
	}
	if err := d.readThrottle(&now); err != nil && !unavailable(err) {
		return nil, err
	}
	return &resource.ClockSample{MHz: now.SMClockMHz, LowClockReason: now.LowClockReason}, nil
}

// heldDown reports whether a GPU is idle, or throttled by power or heat.
func heldDown(reasons uint64) bool {
	return reasons&^uint64(nvml.ClocksEventReasonApplicationsClocksSetting) != 0
}
