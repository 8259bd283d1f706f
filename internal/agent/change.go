package agent

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Every change is read back where NVML has a getter that the driver offers: a call
// that reports success and does nothing is an error.

func (d device) notTaken(call, what string) error {
	return &Error{Call: call, GPU: d.String(), Message: "the driver reported success, but " + what,
		Advice: prose.Advice{What: "Possible cause: another process changes this GPU, or the driver ignores the call.", Fix: "run nvidia-smi -q, which shows the GPU's settings"}}
}

// drivers say how NVML sets a setting. set returns the value that it has then; check
// refuses one that the GPU cannot have, where only the GPU knows; read is nil without a getter.
var drivers = [len(resource.AllSettings)]struct {
	set   func(device, int) (now int, err error)
	check func(device, int) error
	read  func(device, *resource.GPU) error
}{
	resource.MIGMode:         {set: exactly(device.setMIG), read: device.readMIG},
	resource.PersistenceMode: {set: exactly(device.setPersistence), read: device.readPersistence},
	resource.SMClock:         {set: exactly(device.setClock), check: device.clockInReason},
	resource.PowerLimit:      {set: device.setPower, check: device.powerInReason, read: device.readPower},
	resource.ComputeMode:     {set: exactly(device.setComputeMode), check: device.computeModeInReason, read: device.readComputeMode},
}

// was is the value of a setting before a change, as the driver reports it, or else as the ledger has it; "" if neither
// is known.
func (d device) was(s resource.Setting, page resource.Page) string {
	gpu := resource.GPU{}
	if read := drivers[s].read; read != nil && read(d, &gpu) == nil {
		if value, known := gpu.Now(s); known {
			return exact(s, value)
		}
	}
	if known := page.Set.Over(page.Baseline); known.Has(s) {
		return exact(s, known.Value(s))
	}
	return ""
}

func exact(s resource.Setting, value int) string {
	return ledger.Exact(resource.Settings{}.With(s, value), s)
}

func exactly(set func(device, int) error) func(device, int) (int, error) {
	return func(d device, value int) (int, error) { return value, set(d, value) }
}

// unlocks reports whether a request lifts the clock lock, which each GPU can do.
func (r request) unlocks() bool {
	return r.Op == opSet && *r.Setting == resource.SMClock && r.Value == 0
}

// readBack is for the getter of a value that was just set; known is false where it has
// failed. That the driver does not offer it is no error.
func readBack[T any](now T, failed error) (value T, known bool, err error) {
	if unavailable(failed) {
		return now, false, nil
	}
	return now, failed == nil, failed
}

func (d device) setMIG(mode int) error {
	var whole instanceID
	return d.unused(&whole, func() error { return d.trySetMIG(mode) })
}

func (d device) trySetMIG(wanted int) error {
	const call = "nvmlDeviceSetMigMode"
	var activation nvml.Return
	set := func(mode int) error {
		return d.call(call, func() (ret nvml.Return) {
			activation, ret = d.SetMigMode(mode)
			return ret
		})
	}
	if err := set(wanted); err != nil {
		return err
	}
	switched := activation
	current, _, err := d.migMode()
	switch {
	case unavailable(err) && switched == nvml.SUCCESS:
		return nil
	case err != nil:
		return err
	case current == wanted:
		return nil
	case switched == nvml.SUCCESS:
		return d.notTaken(call, "MIG mode is as it was")
	}
	// The mode is pending and would switch at the next reset, which no user expects: cancel it.
	_ = set(current)
	return &Error{Call: call, GPU: d.String(), Code: int(switched), Message: "MIG mode does not switch: " + switched.Error(), Advice: adviceOn(call, switched)}
}

func (d device) setPersistence(mode int) error {
	const call = "nvmlDeviceSetPersistenceMode"
	wanted := nvml.EnableState(mode)
	if err := d.call(call, func() nvml.Return { return d.SetPersistenceMode(wanted) }); err != nil {
		return err
	}
	now, known, err := readBack(get(d, "nvmlDeviceGetPersistenceMode", d.GetPersistenceMode))
	if known && now != wanted {
		return d.notTaken(call, "persistence mode is as it was")
	}
	return err
}

func (d device) setComputeMode(mode int) error {
	const call = "nvmlDeviceSetComputeMode"
	wanted := nvml.ComputeMode(mode)
	if err := d.call(call, func() nvml.Return { return d.SetComputeMode(wanted) }); err != nil {
		return err
	}
	now, known, err := readBack(get(d, "nvmlDeviceGetComputeMode", d.GetComputeMode))
	if known && now != wanted {
		return d.notTaken(call, "the compute mode is as it was")
	}
	return err
}

// setPower sets the power limit and returns the value read back, in mW: drivers round
// a limit, and NVML does not report to which step.
func (d device) setPower(mw int) (int, error) {
	const call = "nvmlDeviceSetPowerManagementLimit"
	if err := d.call(call, func() nvml.Return { return d.SetPowerManagementLimit(uint32(mw)) }); err != nil {
		return 0, err
	}
	now, known, err := readBack(get(d, "nvmlDeviceGetPowerManagementLimit", d.GetPowerManagementLimit))
	if !known {
		return mw, err
	}
	if !resource.RoundedPower(mw, int(now)) {
		return 0, d.notTaken(call, fmt.Sprintf("the power limit is %d mW instead of %d", now, mw))
	}
	return int(now), nil
}

// setClock locks the SM clock, or lifts the lock. NVML has no getter for a lock; only a clock above it is visible.
func (d device) setClock(mhz int) error {
	const call = "nvmlDeviceSetGpuLockedClocks"
	if mhz == 0 {
		return d.call("nvmlDeviceResetGpuLockedClocks", d.ResetGpuLockedClocks)
	}
	if err := d.call(call, func() nvml.Return { return d.SetGpuLockedClocks(uint32(mhz), uint32(mhz)) }); err != nil {
		return err
	}
	now, known, err := readBack(d.smClock())
	if known && int(now) > mhz {
		return d.notTaken(call, fmt.Sprintf("the SM clock is %d MHz, above the lock of %d", now, mhz))
	}
	return err
}

// createSlice creates a GPU instance at its placement and the one compute instance that
// fills it. Its errors state what is left.
func (d device) createSlice(want resource.Slice, need resource.Need) (*resource.LiveSlice, error) {
	p, err := d.offered(want.Profile, need)
	if err != nil {
		return nil, leaving(err, nil)
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
	compute, err := d.fill(instance, p.ComputeSlices)
	if err != nil {
		_ = d.call("nvmlGpuInstanceDestroy", instance.Destroy)
		if _, still, lookErr := d.find(want); lookErr == nil && !still {
			return nil, leaving(err, nil)
		}
		return nil, leaving(err, &id)
	}
	made, found, err := d.find(want)
	switch {
	case unavailable(err): // a slice that cannot be identified is of no use
		if d.call("nvmlComputeInstanceDestroy", compute.Destroy) == nil && d.call("nvmlGpuInstanceDestroy", instance.Destroy) == nil {
			err = leaving(err, nil)
		}
		return nil, err
	case err != nil:
		return nil, err
	case !found || made.UUID == "":
		return nil, leaving(d.notTaken("nvmlGpuInstanceCreateComputeInstance", fmt.Sprintf("there is no %s slice at slot %d", want.Profile, want.Start)), &id)
	}
	made.Boot, err = bootID(d.lib.path)
	return &made, err
}

// leaving notes on an error which GPU instance is left; nil is none.
func leaving(err error, instance *int) error {
	var known *Error
	if errors.As(err, &known) {
		known.GPUInstance, known.Sure = instance, true
	}
	return err
}

// offered finds a profile and compares it with what the plan counted on.
func (d device) offered(name string, need resource.Need) (gpuProfile, error) {
	profiles, err := d.profiles()
	if err != nil {
		return gpuProfile{}, err
	}
	for _, p := range profiles {
		if p.Name != name {
			continue
		}
		if p.SMs != need.SMs || p.MemoryMiB < need.MemoryMiB {
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

// fill creates the compute instance that takes the whole GPU instance.
func (d device) fill(instance nvml.GpuInstance, computeSlices int) (nvml.ComputeInstance, error) {
	code := nvml.ERROR_NOT_SUPPORTED
	for i := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		info, err := get(d, "nvmlGpuInstanceGetComputeInstanceProfileInfo", func() (nvml.ComputeInstanceProfileInfo, nvml.Return) {
			return instance.GetComputeInstanceProfileInfo(i, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		})
		if isCode(err, nvml.ERROR_NOT_SUPPORTED) || isCode(err, nvml.ERROR_INVALID_ARGUMENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		code = nvml.SUCCESS // the driver offers the call, and may lack the profile
		if int(info.SliceCount) == computeSlices {
			return get(d, "nvmlGpuInstanceCreateComputeInstance", func() (nvml.ComputeInstance, nvml.Return) {
				return instance.CreateComputeInstance(&info)
			})
		}
	}
	return nil, &Error{Call: "nvmlGpuInstanceGetComputeInstanceProfileInfo", GPU: d.String(), Code: int(code),
		Message: fmt.Sprintf("no compute instance profile of %d slices", computeSlices), Advice: prose.Advice{What: "The driver offers no way to use the whole GPU instance; nvidia-smi mig -lcip shows what it does offer."}}
}

func (d device) find(want resource.Slice) (resource.LiveSlice, bool, error) {
	profiles, err := d.profiles()
	if err == nil && len(profiles) == 0 {
		if mode, _, modeErr := d.migMode(); modeErr != nil || mode == nvml.DEVICE_MIG_ENABLE {
			err = d.noProfiles() // what slices there are cannot be read
		}
	}
	if err != nil {
		return resource.LiveSlice{}, false, err
	}
	all, err := d.slices(profiles)
	if err != nil {
		return resource.LiveSlice{}, false, err
	}
	for _, s := range all {
		if s.Profile == want.Profile && s.Start == want.Start {
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
		held = &instanceIDs{live.GPUInstance, live.ComputeInstance}
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

// remove destroys a slice, its compute instance first, and calls emptied between the two.
func (d device) remove(s resource.LiveSlice, emptied func()) error {
	instance, err := get(d, "nvmlDeviceGetGpuInstanceById", func() (nvml.GpuInstance, nvml.Return) {
		return d.GetGpuInstanceById(s.GPUInstance)
	})
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
	}
	return d.call("nvmlGpuInstanceDestroy", instance.Destroy)
}
