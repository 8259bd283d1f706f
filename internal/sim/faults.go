//go:build cgo && linux

package sim

// #include "state.h"
import "C"

import (
	"errors"
	"fmt"
)

var actionNumbers = map[Action]C.uint32_t{
	Answer: C.SIM_FAULT_ANSWER,
	Hang:   C.SIM_FAULT_HANG,
	Ignore: C.SIM_FAULT_IGNORE,
	Absent: C.SIM_FAULT_ABSENT,
}

// SetFault makes calls of the driver fail.
func (h *Host) SetFault(f Fault) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := h.addFault(f); err != nil || f.Action != Absent {
		return err
	}
	return Relocate(h.dir)
}

func (h *Host) addFault(f Fault) error {
	return h.locked(func(host *C.struct_sim_host) error {
		if f.GPU != nil && (*f.GPU < 0 || *f.GPU >= int(host.gpu_count)) {
			return fmt.Errorf("the host has no GPU %d; its %d GPUs are counted from 0", *f.GPU, int(host.gpu_count))
		}
		if err := putFault(host, f); err != nil {
			return fmt.Errorf("%w; clear some first", err)
		}
		return nil
	})
}

func putFault(host *C.struct_sim_host, f Fault) error {
	for i := range host.faults {
		if host.faults[i].function[0] != 0 {
			continue
		}
		host.faults[i].nth, host.faults[i].gpu = C.uint32_t(f.Nth), 0
		if f.GPU != nil {
			host.faults[i].gpu = C.uint32_t(*f.GPU + 1)
		}
		host.faults[i].action = actionNumbers[f.Action]
		host.faults[i].code = C.uint32_t(f.Code)
		return put(host.faults[i].function[:], f.Function)
	}
	return fmt.Errorf("a simulated host has room for %d faults", len(host.faults))
}

// ClearFaults removes all faults.
func (h *Host) ClearFaults() error {
	if err := h.locked(func(host *C.struct_sim_host) error {
		clear(host.faults[:])
		return nil
	}); err != nil {
		return err
	}
	return Relocate(h.dir)
}

func absent(dir string) (names []string, err error) {
	h, err := Open(dir)
	if err != nil {
		return nil, err
	}
	shown, err := h.Show()
	for _, f := range shown.Faults {
		if Action(f.Action) == Absent {
			names = append(names, f.Function)
		}
	}
	return names, errors.Join(err, h.Close())
}

func faults(host *C.struct_sim_host) []Fault {
	var all []Fault
	for _, f := range host.faults {
		if f.function[0] == 0 {
			continue
		}
		fault := Fault{Function: text(f.function[:]), Nth: int(f.nth), Code: int(f.code)}
		if f.gpu != 0 {
			gpu := int(f.gpu) - 1
			fault.GPU = &gpu
		}
		for action, number := range actionNumbers {
			if number == f.action {
				fault.Action = action
			}
		}
		all = append(all, fault)
	}
	return all
}
