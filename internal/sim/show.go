//go:build cgo && linux

package sim

// #include "state.h"
import "C"

import (
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// Show reads the whole host, with clock locks, which NVML does not report.
func (h *Host) Show() (public.Simulated, error) {
	var shown public.Simulated
	err := h.locked(func(host *C.struct_sim_host) error {
		shown = public.Simulated{
			Format:    public.V1,
			Simulates: text(host.simulates[:]),
			Driver:    text(host.driver_version[:]),
			CUDA:      int(host.cuda_version),
			BootID:    text(host.boot_id[:]),
		}
		for _, f := range faults(host) {
			shown.Faults = append(shown.Faults, public.Fault{Function: f.Function, GPU: f.GPU, Nth: f.Nth, Action: string(f.Action), Code: f.Code})
		}
		for i := range gpus(host) {
			shown.GPUs = append(shown.GPUs, showGPU(&gpus(host)[i], i))
		}
		return nil
	})
	return shown, err
}

func showGPU(gpu *C.struct_sim_gpu, index int) public.SimulatedGPU {
	g := public.SimulatedGPU{
		Index:        index,
		UUID:         text(gpu.uuid[:]),
		Name:         text(gpu.name[:]),
		MIG:          gpu.mig != 0,
		MIGPending:   gpu.mig_pending != 0,
		Persistence:  gpu.persistence != 0,
		PowerMW:      int(gpu.power_limit_mw),
		ClockLockMHz: int(gpu.lock_max_mhz),
		ComputeMode:  resource.ComputeMode.Text(int(gpu.compute_mode)),
		TemperatureC: int(gpu.temperature_c),
		Lost:         gpu.lost != 0,
	}
	for id := range gpu.instances {
		if gpu.instances[id].used != 0 {
			g.Slices = append(g.Slices, showSlice(gpu, id))
		}
	}
	for _, p := range gpu.processes {
		if p.pid == 0 {
			continue
		}
		shown := public.SimulatedProcess{PID: int(p.pid), MemoryMiB: int(p.memory_mib)}
		if id := int(p.gpu_instance); id != C.SIM_WHOLE_GPU {
			shown.GPUInstance = &id
		}
		g.Processes = append(g.Processes, shown)
	}
	return g
}

func migName(gpu *C.struct_sim_gpu, instance, compute int) string {
	if gpu.named_by_ids != 0 {
		return resource.IDName(text(gpu.uuid[:]), instance, compute)
	}
	return text(gpu.instances[instance].compute[compute].uuid[:])
}

func showSlice(gpu *C.struct_sim_gpu, id int) public.SimulatedSlice {
	instance := &gpu.instances[id]
	profile := &gpu.profiles[instance.profile]
	s := public.SimulatedSlice{
		GPUInstance: id,
		Profile:     text(profile.name[:]),
		Start:       int(instance.start),
		Size:        int(profile.memory_slices),
	}
	for i := range instance.compute {
		if c := &instance.compute[i]; c.used != 0 {
			s.Compute = append(s.Compute, public.SimulatedCompute{ComputeInstance: i, Start: int(c.start), Size: int(c.size), UUID: migName(gpu, id, i)})
		}
	}
	return s
}
