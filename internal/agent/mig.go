//go:build cgo && linux

package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
)

// gpuProfile is a GPU instance profile with the form that NVML's calls take.
type gpuProfile struct {
	resource.Profile
	info nvml.GpuInstanceProfileInfo
	size int // slots, from the placements
}

func (d device) migMode() (current, pending int, err error) {
	return get2(d, "nvmlDeviceGetMigMode", d.GetMigMode)
}

// readMIG reads MIG mode, the profiles and the slices. That a GPU does not support
// MIG is a degradation too, which is dropped where the catalog knows no better.
func (d device) readMIG(gpu *resource.GPU) error {
	before := *gpu
	return d.steadily(func() (inMIG bool, err error) {
		*gpu = before
		err = d.readMIGOnce(gpu)
		return gpu.MIG, err
	})
}

// steadily reads slices again if that fails: another process may have turned MIG mode off or destroyed a slice meanwhile.
// What the driver lacks, it lacks again.
func (d device) steadily(read func() (inMIG bool, err error)) error {
	for reads := 1; ; reads++ {
		inMIG, err := read()
		if err == nil || !inMIG || reads == maxReads {
			return err
		}
		delete(d.lib.tables, d.uuid)
		maps.DeleteFunc(d.lib.profiles, func(b board, _ []gpuProfile) bool { return b.mig })
	}
}

// readParts reports that the library has no function for a slice that is a part of a GPU instance, before a plan counts
// on it. Whether the driver offers the function, an attempt shows.
func (d device) readParts(gpu *resource.GPU) error {
	if !gpu.MIGCapable {
		return nil
	}
	return d.has("nvmlGpuInstanceCreateComputeInstanceWithPlacement")
}

func (d device) readMIGOnce(gpu *resource.GPU) error {
	current, pending, err := d.migMode()
	if err != nil {
		return err
	}
	gpu.MIGCapable = true
	gpu.MIG, gpu.MIGPending = current == nvml.DEVICE_MIG_ENABLE, pending == nvml.DEVICE_MIG_ENABLE
	// those of the board, which are those of this GPU if no other one has been asked
	profiles, err := remembered(d.lib.profiles, d.board(*gpu, gpu.MIG), d.profiles)
	if err != nil {
		return err
	}
	for _, p := range profiles {
		gpu.Model.Profiles = append(gpu.Model.Profiles, p.Profile)
		gpu.Model.MemorySlices = max(gpu.Model.MemorySlices, p.size)
		gpu.Model.ComputeSlices = max(gpu.Model.ComputeSlices, p.ComputeSlices)
	}
	if !gpu.MIG {
		return nil
	}
	if len(profiles) == 0 {
		return d.noProfiles()
	}
	gpu.Slices, err = d.slices(profiles)
	return err
}

// noProfiles is the error of a GPU in MIG mode that offers none.
func (d device) noProfiles() error {
	return d.failed("nvmlDeviceGetGpuInstanceProfileInfoV", nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NOT_SUPPORTED.Error())
}

// profiles returns the GPU instance profiles that the GPU offers. Drivers may
// hide them while MIG mode is off: then there are none.
func (d device) profiles() ([]gpuProfile, error) {
	return remembered(d.lib.tables, d.uuid, d.listProfiles)
}

func (d device) listProfiles() ([]gpuProfile, error) {
	var (
		all   []gpuProfile
		lacks error // that no profile has placements
	)
	for i := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		info, err := get(d, "nvmlDeviceGetGpuInstanceProfileInfoV", func() (nvml.GpuInstanceProfileInfo_v2, nvml.Return) {
			return d.GetGpuInstanceProfileInfoV(i).V2()
		})
		if isCode(err, nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p := gpuProfile{Profile: resource.Profile{
			Name:          strings.TrimPrefix(text(info.Name[:]), "MIG "),
			ID:            int(info.Id),
			SMs:           int(info.MultiprocessorCount),
			MemoryMiB:     int(info.MemorySizeMB),
			ComputeSlices: int(info.SliceCount),
			MaxInstances:  int(info.InstanceCount),
		}}
		p.info.Id, p.info.InstanceCount = info.Id, info.InstanceCount
		placements, err := get(d, "nvmlDeviceGetGpuInstancePossiblePlacements_v2", func() ([]nvml.GpuInstancePlacement, nvml.Return) {
			return d.GetGpuInstancePossiblePlacements(&p.info)
		})
		if isCode(err, nvml.ERROR_NOT_SUPPORTED) {
			lacks = err
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, at := range placements {
			p.Starts = append(p.Starts, int(at.Start))
			p.size = int(at.Size)
		}
		slices.Sort(p.Starts)
		p.MemorySlices = p.size
		if p.size > 0 {
			all = append(all, p)
		}
	}
	if len(all) == 0 && lacks != nil {
		return nil, lacks
	}
	slices.SortFunc(all, func(a, b gpuProfile) int {
		return cmp.Or(cmp.Compare(a.MemorySlices, b.MemorySlices), cmp.Compare(a.ComputeSlices, b.ComputeSlices), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// slices lists the compute instances. A GPU instance without any is an incomplete slice, with an empty UUID.
func (d device) slices(profiles []gpuProfile) ([]resource.LiveSlice, error) {
	uuids, err := d.migUUIDs(allInstances)
	if err != nil {
		return nil, err
	}
	return d.slicesAt(profiles, allStarts, func(int) (map[instanceIDs]string, error) { return uuids, nil })
}

// Arguments of slicesAt and migUUIDs.
const (
	allStarts    = -1
	allInstances = -1
)

// slicesAt lists the compute instances of GPU instances that start at a slot. uuids are those in a GPU instance.
func (d device) slicesAt(profiles []gpuProfile, start int, uuids func(instance int) (map[instanceIDs]string, error)) (all []resource.LiveSlice, err error) {
	var taken uint // the memory slices, as bits: a profile without a free placement has no instances
	for _, p := range profiles {
		if !slices.ContainsFunc(p.Starts, func(start int) bool { return taken&bits(start, p.size) == 0 }) {
			continue
		}
		instances, err := get(d, "nvmlDeviceGetGpuInstances", func() ([]nvml.GpuInstance, nvml.Return) {
			return d.GetGpuInstances(&p.info)
		})
		if err != nil {
			return nil, err
		}
		for _, instance := range instances {
			info, err := get(d, "nvmlGpuInstanceGetInfo", instance.GetInfo)
			if err != nil {
				return nil, err
			}
			taken |= bits(int(info.Placement.Start), int(info.Placement.Size))
			if start != allStarts && int(info.Placement.Start) != start {
				continue
			}
			in, err := uuids(int(info.Id))
			if err != nil {
				return nil, err
			}
			at := resource.LiveSlice{
				Slice: resource.Slice{GPU: d.uuid, Profile: p.Name,
					Start: int(info.Placement.Start), Size: int(info.Placement.Size)},
				Handle: resource.Handle{GPUInstance: int(info.Id)},
			}
			compute, err := d.computeInstances(at, instance, p, in)
			if err != nil {
				return nil, err
			}
			if len(compute) == 0 {
				compute = append(compute, at)
			}
			all = append(all, compute...)
		}
	}
	slices.SortFunc(all, func(a, b resource.LiveSlice) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ComputeStart, b.ComputeStart))
	})
	return all, nil
}

func bits(start, size int) uint { return (1<<size - 1) << start }

// maxComputeInstances of a GPU instance are numbered from 0.
const maxComputeInstances = 8

// computeInstances lists the compute instances of a GPU instance as slices. Where the driver does not report their
// places, the first one counts as the only one.
func (d device) computeInstances(at resource.LiveSlice, instance nvml.GpuInstance, p gpuProfile, uuids map[instanceIDs]string) (all []resource.LiveSlice, err error) {
	for ci := range maxComputeInstances {
		uuid, ok := uuids[instanceIDs{gpu: at.GPUInstance, compute: ci}]
		if !ok {
			continue
		}
		one := at
		one.ComputeInstance, one.UUID = ci, uuid
		if p.ComputeSlices == 1 { // it cannot be divided
			return []resource.LiveSlice{one}, nil
		}
		place, err := d.computePlace(instance, ci)
		switch size := int(place.Size); {
		case unavailable(err):
			return []resource.LiveSlice{one}, nil
		case isCode(err, nvml.ERROR_NOT_FOUND): // another process has destroyed it
			continue
		case err != nil:
			return nil, err
		case size > 0 && size < p.ComputeSlices:
			one.Profile, one.ComputeStart = resource.DividedProfile(size, p.Name), int(place.Start)
		}
		all = append(all, one)
	}
	return all, nil
}

func (d device) computePlace(instance nvml.GpuInstance, id int) (place nvml.ComputeInstancePlacement, err error) {
	compute, err := get(d, "nvmlGpuInstanceGetComputeInstanceById", func() (nvml.ComputeInstance, nvml.Return) {
		return instance.GetComputeInstanceById(id)
	})
	if err != nil {
		return place, err
	}
	info, err := get(d, "nvmlComputeInstanceGetInfo_v2", compute.GetInfo)
	return info.Placement, err
}

// instanceIDs are those of a slice. part says that its compute instance leaves a part of the GPU instance to others.
type instanceIDs struct {
	gpu, compute int
	part         bool
}

func (ids instanceIDs) String() string {
	if ids.part {
		return fmt.Sprintf("compute instance %d of GPU instance %d", ids.compute, ids.gpu)
	}
	return fmt.Sprintf("GPU instance %d", ids.gpu)
}

// migUUIDs lists the UUIDs of the slices in a GPU instance, or in all.
func (d device) migUUIDs(instance int) (map[instanceIDs]string, error) {
	count, err := get(d, "nvmlDeviceGetMaxMigDeviceCount", d.GetMaxMigDeviceCount)
	if err != nil {
		return nil, err
	}
	uuids := map[instanceIDs]string{}
	for i := range count {
		mig, err := get(d, "nvmlDeviceGetMigDeviceHandleByIndex", func() (nvml.Device, nvml.Return) {
			return d.GetMigDeviceHandleByIndex(i)
		})
		if isCode(err, nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		gi, err := get(d, "nvmlDeviceGetGpuInstanceId", mig.GetGpuInstanceId)
		if err != nil {
			return nil, err
		}
		if instance != allInstances && gi != instance {
			continue
		}
		ci, err := get(d, "nvmlDeviceGetComputeInstanceId", mig.GetComputeInstanceId)
		if err != nil {
			return nil, err
		}
		uuid, err := get(d, "nvmlDeviceGetUUID", mig.GetUUID)
		if err != nil {
			return nil, err
		}
		uuids[instanceIDs{gpu: gi, compute: ci}] = uuid
	}
	return uuids, nil
}
