package hostfile

import (
	"slices"

	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// exported has what plans depend on, and nothing of who uses the host: no names of processes, no projects.
func exported(h resource.Host, cosplay string) public.HostExport {
	return public.HostExport{
		Format: public.Format{FormatVersion: version}, Kind: kind, Cosplay: cosplay, Driver: h.Driver, GPUs: each(h.GPUs, exportedGPU),
		Unusable: each(h.Unusable, func(u resource.Unusable) public.Unusable {
			u.Message = message(u.Code, u.Message)
			return public.Unusable(u)
		}),
	}
}

// message is NVML's text. Of a function that the library lacks, the agent has a text with the library's path.
func message(code int, text string) string {
	const functionNotFound = 13
	if code == functionNotFound {
		return "Function Not Found"
	}
	return text
}

func exportedGPU(g resource.GPU) public.ExportedGPU {
	return public.ExportedGPU{
		Index: g.Index, UUID: g.UUID, PCI: g.PCI, Model: Model(g.Model), MIGCapable: g.MIGCapable, MIG: g.MIG, MIGPending: g.MIGPending,
		Persistence: g.Persistence, PowerMW: g.PowerMW, ComputeMode: resource.ComputeMode.Text(g.ComputeMode), SMClockMHz: g.SMClockMHz, LowClockReason: g.LowClockReason,
		Slices: each(g.Slices, func(s resource.LiveSlice) public.ExportedSlice {
			return public.ExportedSlice{UUID: s.UUID, GPUInstance: s.GPUInstance, ComputeInstance: s.ComputeInstance, Profile: s.Profile, Start: s.Start, Size: s.Size,
				ComputeStart: s.ComputeStart}
		}),
		Processes: each(g.Processes, func(p resource.Process) public.Process {
			return public.Process{PID: p.PID, MemoryMiB: p.MemoryMiB, GPUInstance: p.GPUInstance, ComputeInstance: p.ComputeInstance}
		}),
		Degraded: each(slices.DeleteFunc(slices.Clone(g.Degraded), isTimeSlice), func(d resource.Degradation) public.Degradation {
			return public.Degradation{Feature: string(d.Feature), Call: d.Call, Code: d.Code, Message: message(d.Code, d.Message), Set: d.Set}
		}),
	}
}

// isTimeSlice reports whether a program of the driver, and not NVML, does not offer something: a simulated host has
// programs of the machine that simulates it.
func isTimeSlice(d resource.Degradation) bool { return d.Feature == resource.FeatureTimeSlice }

// Model is a model of a GPU as JSON has it.
func Model(m resource.Model) public.Model {
	return public.Model{Name: m.Name, ComputeCapability: m.ComputeCapability, SMs: m.SMs, MemoryMiB: m.MemoryMiB, BandwidthGBs: m.BandwidthGBs, L2MiB: m.L2MiB,
		ClocksMHz: m.ClocksMHz, PowerMinMW: m.PowerMinMW, PowerDefaultMW: m.PowerDefaultMW, PowerMaxMW: m.PowerMaxMW, FP32PerSM: m.FP32PerSM, TensorPerSM: m.TensorPerSM,
		MemorySlices: m.MemorySlices, ComputeSlices: m.ComputeSlices, Profiles: each(m.Profiles, func(p resource.Profile) public.Profile { return public.Profile(p) })}
}

func host(e public.HostExport) resource.Host {
	h := resource.Host{Driver: e.Driver, Unusable: each(e.Unusable, func(u public.Unusable) resource.Unusable { return resource.Unusable(u) })}
	for _, g := range e.GPUs {
		h.GPUs = append(h.GPUs, gpu(g))
	}
	return h
}

func gpu(g public.ExportedGPU) resource.GPU {
	return resource.GPU{
		Index: g.Index, UUID: g.UUID, PCI: g.PCI, Model: model(g.Model), MIGCapable: g.MIGCapable, MIG: g.MIG, MIGPending: g.MIGPending,
		Persistence: g.Persistence, PowerMW: g.PowerMW, ComputeMode: slices.Index(resource.ComputeMode.Names(), g.ComputeMode), SMClockMHz: g.SMClockMHz, LowClockReason: g.LowClockReason,
		Slices: each(g.Slices, func(s public.ExportedSlice) resource.LiveSlice {
			return resource.LiveSlice{Slice: resource.Slice{GPU: g.UUID, Profile: s.Profile, Start: s.Start, Size: s.Size, ComputeStart: s.ComputeStart},
				Handle: resource.Handle{GPUInstance: s.GPUInstance, ComputeInstance: s.ComputeInstance, UUID: s.UUID}}
		}),
		Processes: each(g.Processes, func(p public.Process) resource.Process {
			return resource.Process{PID: p.PID, MemoryMiB: p.MemoryMiB, GPUInstance: p.GPUInstance, ComputeInstance: p.ComputeInstance}
		}),
		Degraded: each(g.Degraded, func(d public.Degradation) resource.Degradation {
			return resource.Degradation{Feature: resource.Feature(d.Feature), Call: d.Call, Code: d.Code, Message: d.Message, Set: d.Set}
		}),
	}
}

func model(m public.Model) resource.Model {
	return resource.Model{Name: m.Name, ComputeCapability: m.ComputeCapability, SMs: m.SMs, MemoryMiB: m.MemoryMiB, BandwidthGBs: m.BandwidthGBs, L2MiB: m.L2MiB,
		ClocksMHz: m.ClocksMHz, PowerMinMW: m.PowerMinMW, PowerDefaultMW: m.PowerDefaultMW, PowerMaxMW: m.PowerMaxMW, FP32PerSM: m.FP32PerSM, TensorPerSM: m.TensorPerSM,
		MemorySlices: m.MemorySlices, ComputeSlices: m.ComputeSlices, Profiles: each(m.Profiles, func(p public.Profile) resource.Profile { return resource.Profile(p) })}
}

// each converts a list. The result is never nil: JSON has [] for an empty list, and not null.
func each[A, B any](all []A, one func(A) B) []B {
	out := make([]B, len(all))
	for i := range all {
		out[i] = one(all[i])
	}
	return out
}
