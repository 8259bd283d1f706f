package agent

import (
	"cmp"
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
	current, pending, err := d.migMode()
	if err != nil {
		return err
	}
	gpu.MIGCapable = true
	gpu.MIG, gpu.MIGPending = current == nvml.DEVICE_MIG_ENABLE, pending == nvml.DEVICE_MIG_ENABLE
	profiles, err := d.profiles()
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
	const call = "nvmlDeviceGetGpuInstanceProfileInfoV"
	return &Error{Call: call, GPU: d.String(), Code: int(nvml.ERROR_NOT_SUPPORTED), Message: nvml.ERROR_NOT_SUPPORTED.Error(), Advice: adviceOn(call, nvml.ERROR_NOT_SUPPORTED)}
}

// profiles lists the GPU instance profiles that the GPU offers. Drivers may
// hide them while MIG mode is off: then there are none.
func (d device) profiles() ([]gpuProfile, error) {
	var (
		all   []gpuProfile
		lacks error // that no profile has placements
	)
	for i := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		info, err := get(d, "nvmlDeviceGetGpuInstanceProfileInfoV", func() (nvml.GpuInstanceProfileInfo_v2, nvml.Return) {
			return d.GetGpuInstanceProfileInfoV(i).V2()
		})
		if isCode(err, nvml.ERROR_NOT_SUPPORTED) || isCode(err, nvml.ERROR_INVALID_ARGUMENT) {
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

// slices lists the GPU instances, each with its first compute instance. One without any is
// an incomplete slice, with an empty UUID.
func (d device) slices(profiles []gpuProfile) ([]resource.LiveSlice, error) {
	uuids, err := d.migUUIDs()
	if err != nil {
		return nil, err
	}
	var all []resource.LiveSlice
	for _, p := range profiles {
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
			at := resource.LiveSlice{
				Slice: resource.Slice{GPU: d.uuid, Profile: p.Name,
					Start: int(info.Placement.Start), Size: int(info.Placement.Size)},
				Handle: resource.Handle{GPUInstance: int(info.Id)},
			}
			// A GPU instance has at most 8 compute instances; the lowest names the slice.
			for ci := range 8 {
				if uuid, ok := uuids[instanceIDs{at.GPUInstance, ci}]; ok {
					at.ComputeInstance, at.UUID = ci, uuid
					break
				}
			}
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b resource.LiveSlice) int { return cmp.Compare(a.Start, b.Start) })
	return all, nil
}

type instanceIDs struct{ gpu, compute int }

func (d device) migUUIDs() (map[instanceIDs]string, error) {
	count, err := get(d, "nvmlDeviceGetMaxMigDeviceCount", d.GetMaxMigDeviceCount)
	if err != nil {
		return nil, err
	}
	uuids := map[instanceIDs]string{}
	for i := range count {
		mig, err := get(d, "nvmlDeviceGetMigDeviceHandleByIndex", func() (nvml.Device, nvml.Return) {
			return d.GetMigDeviceHandleByIndex(i)
		})
		if isCode(err, nvml.ERROR_NOT_FOUND) || isCode(err, nvml.ERROR_INVALID_ARGUMENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		gi, err := get(d, "nvmlDeviceGetGpuInstanceId", mig.GetGpuInstanceId)
		if err != nil {
			return nil, err
		}
		ci, err := get(d, "nvmlDeviceGetComputeInstanceId", mig.GetComputeInstanceId)
		if err != nil {
			return nil, err
		}
		uuid, err := get(d, "nvmlDeviceGetUUID", mig.GetUUID)
		if err != nil {
			return nil, err
		}
		uuids[instanceIDs{gi, ci}] = uuid
	}
	return uuids, nil
}
