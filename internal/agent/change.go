//go:build cgo && linux

package agent

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Every change is read back where NVML has a getter that the driver offers: a call
// that reports success and does nothing is an error.

func (d device) notTaken(call, what string) error {
	return &Error{Call: call, GPU: d.String(), Message: "the driver reported success, but " + what,
		Advice: prose.Advice{What: "Possible cause: another process changes this GPU, or the driver ignores the call.", Fix: "run nvidia-smi -q, which shows the GPU's settings"}}
}

// settingDriver says how NVML, or nvidia-smi, sets a setting. set returns the value that it has then; check refuses one
// that the GPU cannot have, where only the GPU knows; read is nil without a getter.
type settingDriver struct {
	set   func(device, int) (now int, err error)
	check func(device, int) error
	read  func(device, *resource.GPU) error
}

var drivers = [len(resource.AllSettings)]settingDriver{
	resource.MIGMode: {set: exactly(device.setMIG), read: device.readMIG},
	resource.PersistenceMode: plain(resource.PersistenceMode, "nvmlDeviceGetPersistenceMode", nvml.Device.GetPersistenceMode,
		"nvmlDeviceSetPersistenceMode", nvml.Device.SetPersistenceMode),
	resource.SMClock:    {set: exactly(device.setClock), check: device.clockInReason},
	resource.PowerLimit: {set: device.setPower, check: device.powerInReason, read: device.readPower},
	resource.ComputeMode: plain(resource.ComputeMode, "nvmlDeviceGetComputeMode", nvml.Device.GetComputeMode,
		"nvmlDeviceSetComputeMode", nvml.Device.SetComputeMode),
	resource.TimeSlice: {set: exactly(device.setTimeSlice), check: named(resource.TimeSlice), read: device.readTimeSlice},
}

// plain is a setting that NVML has a getter and a setter of, with the numbers of its values that cosplay has.
func plain[V ~int32](s resource.Setting, getter string, read func(nvml.Device) (V, nvml.Return),
	setter string, set func(nvml.Device, V) nvml.Return) settingDriver {
	now := func(d device) (int, error) {
		value, err := get(d, getter, func() (V, nvml.Return) { return read(d.Device) })
		return int(value), err
	}
	return settingDriver{check: named(s),
		set: exactly(func(d device, wanted int) error {
			if err := d.call(setter, func() nvml.Return { return set(d.Device, V(wanted)) }); err != nil {
				return err
			}
			value, known, err := readBack(now(d))
			if known && value != wanted {
				return d.notTaken(setter, s.Feature().Words()+" is as it was")
			}
			return err
		}),
		read: func(d device, gpu *resource.GPU) error {
			value, err := now(d)
			gpu.Show(s, value)
			return err
		}}
}

// named refuses a value without a name, of a setting whose values have names.
func named(s resource.Setting) func(device, int) error {
	return func(d device, value int) error {
		if names := s.Names(); names != nil && (value < 0 || value >= len(names)) {
			return fmt.Errorf("%s: there is no %s %d; cosplay plan finds one", d, s.Words(), value)
		}
		return nil
	}
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
	delete(d.lib.tables, d.uuid)
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
	return d.failed(call, switched, "MIG mode does not switch: "+switched.Error())
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
