//go:build cgo && linux

package sim

// #include "state.h"
import "C"

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"cosplay/internal/resource"
)

// CreateLike creates a host like Create whose GPUs stand for those of another host, as they were read there: with their
// UUIDs, settings, slices, processes and what the driver answered. The index of each GPU of the host is its place in the
// list of the driver.
func CreateLike(dir string, of resource.Host, opts Options) error {
	opts.Driver = of.Driver
	models := make([]resource.Model, len(of.GPUs)+len(of.Unusable))
	for i := range models {
		models[i] = resource.Model{Name: "unusable", ComputeCapability: "0.0", ClocksMHz: []int{1}} // no call reads it
	}
	for _, g := range of.GPUs {
		m := g.Model
		m.ComputeCapability = cmp.Or(m.ComputeCapability, "0.0") // a fault hides what the driver did not answer
		if len(m.ClocksMHz) == 0 {
			m.ClocksMHz = []int{1}
		}
		models[g.Index] = m
	}
	state, err := newState(models, opts)
	if err != nil {
		return err
	}
	host := view(state)
	for _, g := range of.GPUs {
		if err := imprint(&gpus(host)[g.Index], g); err != nil {
			return fmt.Errorf("cannot simulate GPU %d: %w", g.Index, err)
		}
	}
	if err := answerLike(host, of); err != nil {
		return err
	}
	return create(dir, state)
}

// imprint sets a new GPU as another one was.
func imprint(gpu *C.struct_sim_gpu, g resource.GPU) error {
	gpu.mig, gpu.mig_pending, gpu.persistence = flag(g.MIG), flag(g.MIGPending), flag(g.Persistence)
	if g.MIGCapable && gpu.memory_slices == 0 { // the driver hides the profiles
		gpu.memory_slices = 1
	}
	gpu.compute_mode = C.uint32_t(g.ComputeMode)
	gpu.cores = C.uint32_t(g.Model.SMs * resource.CoresPerSM(int(gpu.capability_major), int(gpu.capability_minor)))
	if !g.Unread(resource.FeaturePower) {
		gpu.power_limit_mw = C.uint32_t(g.PowerMW)
	}
	if memoryGBs(gpu) != g.Model.BandwidthGBs { // with a bus that is less wide, a clock in whole MHz gives each bandwidth
		gpu.bus_bits = 384
		gpu.memory_clock_mhz = C.uint32_t(math.Round(g.Model.BandwidthGBs * 1000 * 8 / (2 * 384)))
	}
	if !g.Unread(resource.ReadingPCI) {
		var domain, bus, device uint32
		if _, err := fmt.Sscanf(g.PCI+"\n", "%x:%x:%x.0\n", &domain, &bus, &device); err != nil || bus > math.MaxUint8 || device > math.MaxUint8 {
			return fmt.Errorf("%q is not the PCI address of a GPU", g.PCI)
		}
		gpu.pci_domain, gpu.pci_bus, gpu.pci_device = C.uint32_t(domain), C.uint32_t(bus), C.uint16_t(device)
	}
	if err := errors.Join(put(gpu.uuid[:], g.UUID), placeSlices(gpu, g), placeProcesses(gpu, g.Processes)); err != nil {
		return err
	}
	imprintClock(gpu, g)
	gpu.held_open = C.uint16_t(flag(!g.Persistence && (gpu.power_limit_mw != gpu.power_default_mw || gpu.compute_mode != 0)))
	return nil
}

// memoryGBs is the bandwidth as the agent computes it.
func memoryGBs(gpu *C.struct_sim_gpu) float64 {
	return math.Round(2 * float64(gpu.memory_clock_mhz) * float64(gpu.bus_bits) / 8 / 1000)
}

// imprintClock makes the unlocked GPU report the SM clock that was read. It may be that of a lock, which NVML cannot read.
func imprintClock(gpu *C.struct_sim_gpu, g resource.GPU) {
	busy := len(g.Processes) > 0
	usual := gpu.clocks_mhz[0]
	if busy {
		usual = gpu.clocks_mhz[gpu.clock_count-1]
	}
	if C.uint32_t(g.SMClockMHz) != usual {
		gpu.unlocked_mhz = C.uint16_t(g.SMClockMHz)
	}
	switch {
	case g.LowClockReason && busy:
		gpu.low_clock = C.SIM_LOW_CLOCK_ALWAYS
	case !g.LowClockReason && !busy:
		gpu.low_clock = C.SIM_LOW_CLOCK_NEVER
	}
}

func placeSlices(gpu *C.struct_sim_gpu, g resource.GPU) error {
	for _, s := range g.Slices {
		profile := slices.IndexFunc(g.Model.Profiles, func(p resource.Profile) bool { return p.Name == s.Instance().Profile })
		if profile < 0 || s.GPUInstance < 0 || s.GPUInstance >= len(gpu.instances) || s.ComputeInstance < 0 || s.ComputeInstance >= C.SIM_MAX_COMPUTE_INSTANCES {
			return fmt.Errorf("there is no room for compute instance %d of GPU instance %d, %s", s.ComputeInstance, s.GPUInstance, s.Profile)
		}
		instance := &gpu.instances[s.GPUInstance]
		instance.used, instance.profile, instance.start = 1, C.uint32_t(profile), C.uint32_t(s.Start)
		if s.UUID == "" {
			continue
		}
		uuid := s.UUID
		if s.NamedByIDs() {
			gpu.named_by_ids = 1
			sum := sha256.Sum256([]byte(uuid))
			uuid = "MIG-" + formatUUID(sum[:])
		}
		compute := &instance.compute[s.ComputeInstance]
		compute.used, compute.start = 1, C.uint32_t(s.ComputeStart)
		compute.size = C.uint32_t(cmp.Or(s.ComputeSlices(), g.Model.Profiles[profile].ComputeSlices))
		if err := put(compute.uuid[:], uuid); err != nil {
			return err
		}
	}
	return nil
}

func placeProcesses(gpu *C.struct_sim_gpu, processes []resource.Process) error {
	for _, p := range processes {
		process := C.struct_sim_process{pid: C.uint32_t(p.PID), memory_mib: C.uint32_t(p.MemoryMiB), gpu_instance: C.SIM_WHOLE_GPU, compute_instance: C.SIM_WHOLE_GPU}
		if p.GPUInstance != nil {
			process.gpu_instance, process.compute_instance = C.int32_t(*p.GPUInstance), 0
		}
		if p.ComputeInstance != nil {
			process.compute_instance = C.int32_t(*p.ComputeInstance)
		}
		if err := addProcess(gpu, process); err != nil {
			return err
		}
	}
	return nil
}

// answerLike makes each call fail as it failed on the other host, by as few faults as possible.
func answerLike(host *C.struct_sim_host, of resource.Host) error {
	var order []Fault
	failed := map[Fault][]int{} // the GPUs, by fault without one
	add := func(call string, code, gpu int) {
		f := Fault{Function: call, Action: Answer, Code: code}
		if failed[f] == nil {
			order = append(order, f)
		}
		failed[f] = append(failed[f], gpu)
	}
	for _, g := range of.GPUs {
		for _, d := range g.Degraded {
			if !d.Set { // what the ledger has on record is not tried
				add(d.Call, d.Code, g.Index)
			}
		}
	}
	for _, u := range of.Unusable {
		gpu := &gpus(host)[u.Index]
		if err := errors.Join(put(gpu.uuid[:], u.UUID), put(gpu.name[:], "unusable")); err != nil {
			return err
		}
		add(u.Call, u.Code, u.Index)
	}
	for _, f := range order {
		if err := failOn(host, f, failed[f]); err != nil {
			return fmt.Errorf("cannot simulate that %s failed: %w", f.Function, err)
		}
	}
	return nil
}

// failOn puts a fault on some GPUs.
func failOn(host *C.struct_sim_host, f Fault, indexes []int) error {
	if err := f.check(); err != nil {
		return err
	}
	if len(indexes) == int(host.gpu_count) {
		return putFault(host, f)
	}
	for _, index := range indexes {
		f.GPU = &index
		if err := putFault(host, f); err != nil {
			return err
		}
	}
	return nil
}
