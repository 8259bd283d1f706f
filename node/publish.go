package main

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"cosplay/internal/public"
)

// driverName is that of the DRA driver.
const driverName = "gpu.cosplay.dev"

// A placement is what the scheduler allocates, a device in Kubernetes' words: a MIG placement of a GPU, or the whole GPU.
type placement struct {
	gpu     public.ExportedGPU
	profile public.Profile // no name: the whole GPU
	start   int            // first slot
}

func (p placement) whole() bool { return p.profile.Name == "" }

// memory is its size in bytes.
func (p placement) memory() int64 {
	if p.whole() {
		return int64(p.gpu.Model.MemoryMiB) << 20
	}
	return int64(p.profile.MemoryMiB) << 20
}

// name is that of the device, a DNS label. It has the UUID of the GPU: an index becomes that of another GPU when one is lost.
func (p placement) name() string {
	if p.whole() {
		return setOf(p.gpu) + "-whole"
	}
	return fmt.Sprintf("%s-%s-%d", setOf(p.gpu), strings.ReplaceAll(p.profile.Name, ".", "-"), p.start)
}

// slice is how a session's block names the placement; "" for the whole GPU.
func (p placement) slice() string {
	if p.whole() {
		return ""
	}
	return fmt.Sprintf("%s@%d", p.profile.Name, p.start)
}

// placementsOf are all placements of a GPU, small ones first, and the whole of it: the scheduler takes the first that fits. Profiles
// that differ from another in media engines or graphics only are left out: sessions get them by name alone.
func placementsOf(gpu public.ExportedGPU) (all []placement) {
	profiles := slices.Clone(gpu.Model.Profiles)
	slices.SortStableFunc(profiles, func(a, b public.Profile) int {
		return a.MemorySlices + a.ComputeSlices - b.MemorySlices - b.ComputeSlices
	})
	for _, p := range profiles {
		if strings.ContainsAny(p.Name, "+-") {
			continue
		}
		for _, start := range p.Starts {
			all = append(all, placement{gpu, p, start})
		}
	}
	return append(all, placement{gpu: gpu})
}

// Limits of the API, in Kubernetes 1.37.
const (
	maxDevices = 64 // of a ResourceSlice with counters
	maxSets    = 8  // counter sets of a ResourceSlice
)

// resources are what the node publishes: for each GPU a set of counters, one for each memory slice and one for the compute
// slices, which its placements consume. taints are those of devices, by name; sharing is how claims share a GPU, by its UUID.
func resources(node string, gpus []public.ExportedGPU, sharing func(gpu string) string, taints map[string]resourceapi.DeviceTaint) resourceslice.DriverResources {
	var counters, devicesOf []resourceslice.Slice
	var sets []resourceapi.CounterSet
	for _, g := range gpus {
		sets = append(sets, resourceapi.CounterSet{Name: setOf(g), Counters: placement{gpu: g}.consumes()})
		var devices []resourceapi.Device
		for _, p := range placementsOf(g) {
			one := p.device(sharing(g.UUID))
			if taint, tainted := taints[one.Name]; tainted {
				one.Taints = []resourceapi.DeviceTaint{taint}
			}
			devices = append(devices, one)
		}
		for some := range slices.Chunk(devices, maxDevices) {
			devicesOf = append(devicesOf, resourceslice.Slice{Devices: some})
		}
	}
	for some := range slices.Chunk(sets, maxSets) {
		counters = append(counters, resourceslice.Slice{SharedCounters: some})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: {Slices: append(counters, devicesOf...)}}}
}

// setOf is the name of a GPU's counters, with which the names of its devices begin.
func setOf(g public.ExportedGPU) string { return strings.ToLower(g.UUID) }

// consumes are the counters that a placement takes; the whole GPU takes all.
func (p placement) consumes() map[string]resourceapi.Counter {
	all := map[string]resourceapi.Counter{}
	take := func(name string, n int) {
		all[name] = resourceapi.Counter{Value: *resource.NewQuantity(int64(n), resource.DecimalSI)}
	}
	from, to, compute := p.start, p.start+p.profile.MemorySlices, p.profile.ComputeSlices
	if p.whole() {
		from, to, compute = 0, max(1, p.gpu.Model.MemorySlices), max(1, p.gpu.Model.ComputeSlices)
	}
	for slot := from; slot < to; slot++ {
		take(fmt.Sprintf("slot-%d", slot), 1)
	}
	take("compute", compute)
	return all
}

// capacityMemory is the capacity of a device that claims which share it ask for a part of.
const capacityMemory = "memory"

func (p placement) device(sharing string) resourceapi.Device {
	text := func(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }
	number := func(n int) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValue: new(int64(n))} }
	profile, sms := p.profile.Name, p.profile.SMs
	if p.whole() {
		profile, sms = "whole", p.gpu.Model.SMs
	}
	d := resourceapi.Device{
		Name: p.name(),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"parentUUID": text(p.gpu.UUID), "index": number(p.gpu.Index), "model": text(p.gpu.Model.Name), "profile": text(profile),
			"placement": number(p.start), "sms": number(sms), "clockMHz": number(p.gpu.SMClockMHz),
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			capacityMemory: {Value: *resource.NewQuantity(p.memory(), resource.BinarySI)},
		},
		ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: setOf(p.gpu), Counters: p.consumes()}},
	}
	if p.whole() && sharing != "" {
		d.AllowMultipleAllocations = new(true)
		d.Attributes["sharing"] = text(sharing)
	}
	return d
}
