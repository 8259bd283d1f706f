//go:build cgo && linux

package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// createSlice creates a GPU instance at its placement with a compute instance, or a compute instance beside another
// one. Its errors state what is left.
func (d device) createSlice(want resource.Slice, need resource.Need) (*resource.LiveSlice, error) {
	p, err := d.offered(want, need)
	if err != nil {
		return nil, leaving(err, nil)
	}
	if need.Beside != "" {
		instance, err := d.instanceOf(want, need, p)
		if err != nil {
			return nil, leaving(err, nil)
		}
		return d.fill(instance, nil, p, want, need)
	}
	placement := nvml.GpuInstancePlacement{Start: uint32(want.Start), Size: uint32(p.size)}
	instance, err := get(d, "nvmlDeviceCreateGpuInstanceWithPlacement", func() (nvml.GpuInstance, nvml.Return) {
		return d.CreateGpuInstanceWithPlacement(&p.info, &placement)
	})
	if err != nil {
		return nil, leaving(err, nil)
	}
	info, err := get(d, "nvmlGpuInstanceGetInfo", instance.GetInfo)
	if err != nil {
		if undone := d.call("nvmlGpuInstanceDestroy", instance.Destroy); undone == nil {
			err = leaving(err, nil)
		}
		return nil, err // only the GPU can report which instance is left
	}
	id := int(info.Id)
	d.lib.made.Store(&id)
	defer d.lib.made.Store(nil)
	return d.fill(instance, &id, p, want, need)
}

// instanceOf is the GPU instance with the compute instance beside which a slice is created.
func (d device) instanceOf(want resource.Slice, need resource.Need, p gpuProfile) (nvml.GpuInstance, error) {
	all, err := d.slices([]gpuProfile{p})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s resource.LiveSlice) bool {
		return s.UUID == need.Beside && s.Start == want.Start && s.Instance().Profile == p.Name
	})
	if i < 0 {
		return nil, &Error{Call: createPart, GPU: d.String(), Message: fmt.Sprintf("the %s at slot %d no longer has the compute instance %s", p.Name, want.Start, need.Beside),
			Advice: prose.Advice{What: "Another process has destroyed it since the plan.", Fix: planAgain}}
	}
	return d.instance(all[i].GPUInstance)
}

// The calls that create a compute instance: the one that fills its GPU instance, or a part of it.
const (
	createWhole = "nvmlGpuInstanceCreateComputeInstance"
	createPart  = "nvmlGpuInstanceCreateComputeInstanceWithPlacement"
)

// fill creates the compute instance of a slice in its GPU instance. own is the GPU instance if it was created for the
// slice: it is destroyed if the slice cannot be used. It is nil for the GPU instance of another slice.
func (d device) fill(instance nvml.GpuInstance, own *int, p gpuProfile, want resource.Slice, need resource.Need) (*resource.LiveSlice, error) {
	call, destroy := createPart, func() error { return nil }
	if own != nil {
		call, destroy = createWhole, func() error { return d.call("nvmlGpuInstanceDestroy", instance.Destroy) }
	}
	compute, err := d.compute(instance, p, want, need)
	if err != nil {
		_ = destroy()
		if _, still, lookErr := d.find(want); lookErr == nil && !still {
			return nil, leaving(err, nil)
		}
		if own != nil {
			err = leaving(err, own)
		}
		return nil, err
	}
	made, found, err := d.find(want)
	switch {
	case unavailable(err): // a slice that cannot be identified is of no use
		if d.call("nvmlComputeInstanceDestroy", compute.Destroy) == nil && destroy() == nil {
			err = leaving(err, nil)
		}
		return nil, err
	case err != nil:
		return nil, err
	case !found || made.UUID == "":
		return nil, leaving(d.notTaken(call, fmt.Sprintf("there is no %s slice at slot %d", want.Profile, want.Start)), own)
	}
	made.Boot, err = bootID(d.lib.path)
	return &made, err
}

func (d device) instance(id int) (nvml.GpuInstance, error) {
	return get(d, "nvmlDeviceGetGpuInstanceById", func() (nvml.GpuInstance, nvml.Return) { return d.GetGpuInstanceById(id) })
}

// leaving notes on an error which GPU instance is left; nil is none.
func leaving(err error, instance *int) error {
	if known, is := errors.AsType[*Error](err); is {
		known.GPUInstance, known.Sure = instance, true
	}
	return err
}

// offered finds the profile of a slice's GPU instance and compares it with what the plan counted on. The SMs of a part
// of it are not known before it exists.
func (d device) offered(want resource.Slice, need resource.Need) (gpuProfile, error) {
	name := want.Instance().Profile
	profiles, err := d.profiles()
	if err != nil {
		return gpuProfile{}, err
	}
	for _, p := range profiles {
		if p.Name != name {
			continue
		}
		if p.SMs != need.SMs && !want.Divides() || p.MemoryMiB < need.MemoryMiB {
			return p, &Error{Call: "nvmlDeviceGetGpuInstanceProfileInfoV", GPU: d.String(),
				Message: fmt.Sprintf("the driver's %s has %d SMs and %d MiB, but the plan counted on %d SMs and needs %d MiB", p.Name, p.SMs, p.MemoryMiB, need.SMs, need.MemoryMiB),
				Advice:  prose.Advice{What: "Now that MIG mode is on, the driver reports its own table.", Fix: planAgain}}
		}
		return p, nil
	}
	if current, _, err := d.migMode(); err == nil && current == nvml.DEVICE_MIG_ENABLE && len(profiles) == 0 {
		return gpuProfile{}, d.noProfiles()
	}
	return gpuProfile{}, &Error{Call: "nvmlDeviceGetGpuInstanceProfileInfoV", GPU: d.String(), Message: "no profile " + name,
		Refused: len(profiles) == 0, // MIG mode is off again
		Advice:  prose.Advice{What: "nvidia-smi mig -lgip lists what this GPU offers.", Fix: planAgain}}
}

// compute creates the compute instance of a slice: the one that fills its GPU instance, or a part at its place.
func (d device) compute(instance nvml.GpuInstance, p gpuProfile, want resource.Slice, need resource.Need) (nvml.ComputeInstance, error) {
	if !want.Divides() {
		info, err := d.computeProfile(instance, p.ComputeSlices)
		if err != nil {
			return nil, err
		}
		return get(d, createWhole, func() (nvml.ComputeInstance, nvml.Return) {
			return instance.CreateComputeInstance(&info)
		})
	}
	size := want.ComputeSlices()
	info, err := d.computeProfile(instance, size)
	if err != nil {
		return nil, err
	}
	if int(info.MultiprocessorCount) != need.SMs {
		return nil, &Error{Call: "nvmlGpuInstanceGetComputeInstanceProfileInfo", GPU: d.String(),
			Message: fmt.Sprintf("the driver's %s has %d SMs, but the plan counted on %d", want.Profile, info.MultiprocessorCount, need.SMs),
			Advice:  prose.Advice{What: "cosplay computes the SMs of a compute instance from those of the smallest GPU instance.", Fix: "use a slice without \"c\" in its profile"}}
	}
	placement := nvml.ComputeInstancePlacement{Start: uint32(want.ComputeStart), Size: uint32(size)}
	return get(d, createPart, func() (nvml.ComputeInstance, nvml.Return) {
		return instance.CreateComputeInstanceWithPlacement(&info, &placement)
	})
}

// computeProfile finds the profile of compute instances of a number of compute slices.
func (d device) computeProfile(instance nvml.GpuInstance, computeSlices int) (info nvml.ComputeInstanceProfileInfo, err error) {
	code := nvml.ERROR_NOT_SUPPORTED
	for i := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		info, err := get(d, "nvmlGpuInstanceGetComputeInstanceProfileInfo", func() (nvml.ComputeInstanceProfileInfo, nvml.Return) {
			return instance.GetComputeInstanceProfileInfo(i, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		})
		if isCode(err, nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT) {
			continue
		}
		if err != nil {
			return info, err
		}
		code = nvml.SUCCESS // the driver offers the call, and may lack the profile
		if int(info.SliceCount) == computeSlices {
			return info, nil
		}
	}
	return info, &Error{Call: "nvmlGpuInstanceGetComputeInstanceProfileInfo", GPU: d.String(), Code: int(code),
		Message: fmt.Sprintf("no compute instance profile of %d slices", computeSlices), Advice: prose.Advice{What: "nvidia-smi mig -lcip shows what the driver offers."}}
}

// find looks for a slice at its place.
func (d device) find(want resource.Slice) (found resource.LiveSlice, there bool, err error) {
	err = d.steadily(func() (bool, error) {
		found, there, err = d.findOnce(want)
		return true, err
	})
	return found, there, err
}

func (d device) findOnce(want resource.Slice) (resource.LiveSlice, bool, error) {
	profiles, err := d.profiles()
	if err == nil && len(profiles) == 0 {
		if mode, _, modeErr := d.migMode(); modeErr != nil || mode == nvml.DEVICE_MIG_ENABLE {
			err = d.noProfiles() // what slices there are cannot be read
		}
	}
	if err != nil {
		return resource.LiveSlice{}, false, err
	}
	name := want.Instance().Profile
	profiles = slices.DeleteFunc(slices.Clone(profiles), func(p gpuProfile) bool { return p.Name != name })
	all, err := d.slicesAt(profiles, want.Start, d.migUUIDs)
	if err != nil {
		return resource.LiveSlice{}, false, err
	}
	for _, s := range all {
		if s.IsAt(want) {
			s.Host = want.Host
			return s, true, nil
		}
	}
	return resource.LiveSlice{}, false, nil
}

// destroySlice removes a slice that is still the recorded one: ids are used again, so profile, placement and UUID
// must match. A slice that does not exist any more is no error. Once its compute instance is removed, s has no UUID.
func (d device) destroySlice(s *resource.LiveSlice) error {
	const call = "nvmlGpuInstanceDestroy"
	var held instanceID
	if err := d.unused(&held, func() error {
		live, found, err := d.find(s.Slice)
		if err != nil || !found {
			return err
		}
		if live.Boot, err = bootID(d.lib.path); err != nil {
			return err
		}
		held = &instanceIDs{live.GPUInstance, live.ComputeInstance, live.Divides()}
		if s.Match(live) == resource.OtherSlice {
			return &Error{Call: call, GPU: d.String(),
				Message: fmt.Sprintf("the slice at slot %d is another one now (%s, not %s); cosplay leaves it alone", s.Start, live.UUID, s.UUID),
				Advice:  prose.Advice{What: "It was recreated outside cosplay.", Fix: planAgain}}
		}
		return d.remove(live, func() { s.Handle = resource.Handle{GPUInstance: live.GPUInstance} })
	}); err != nil {
		return err
	}
	if _, found, err := d.find(s.Slice); err != nil || !found {
		return err
	}
	return d.notTaken(call, fmt.Sprintf("the slice at slot %d is still there", s.Start))
}

// remove destroys a slice: its compute instance, and the GPU instance unless it has others. It calls emptied between the
// two.
func (d device) remove(s resource.LiveSlice, emptied func()) error {
	instance, err := d.instance(s.GPUInstance)
	if err != nil {
		return err
	}
	if s.UUID != "" {
		compute, err := get(d, "nvmlGpuInstanceGetComputeInstanceById", func() (nvml.ComputeInstance, nvml.Return) {
			return instance.GetComputeInstanceById(s.ComputeInstance)
		})
		if err != nil {
			return err
		}
		if err := d.call("nvmlComputeInstanceDestroy", compute.Destroy); err != nil {
			return err
		}
		emptied()
		if s.Divides() {
			if others, err := d.migUUIDs(s.GPUInstance); err != nil || len(others) > 0 {
				return err
			}
		}
	}
	return d.call("nvmlGpuInstanceDestroy", instance.Destroy)
}
