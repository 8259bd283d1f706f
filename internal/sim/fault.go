package sim

// #include "state.h"
import "C"

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cosplay/driver"
)

// Action is what happens to the call that a fault waits for.
type Action string

// The actions of a fault.
const (
	Answer Action = "answer" // it does nothing and answers the code
	Hang   Action = "hang"   // it never comes back
	Ignore Action = "ignore" // it does nothing and answers success
)

// Fault waits for the nth call of a function from now on, and is spent then; 0
// strikes at every call. A function's name without _v2 means all its versions.
type Fault struct {
	Function string `json:"function"`
	Nth      int    `json:"nth"`
	Action   Action `json:"action"`
	Code     int    `json:"code,omitempty"` // what NVML answers
}

// String writes a fault as ParseFault reads it.
func (f Fault) String() string {
	what := string(f.Action)
	if f.Action == Answer {
		what = strconv.Itoa(f.Code)
		if f.Code >= 0 && f.Code < len(codes) {
			what = codes[f.Code]
		}
	}
	return fmt.Sprintf("%s:%d=%s", f.Function, f.Nth, what)
}

// codes are NVML's names of its answers, in order of their numbers.
var codes = []string{
	"SUCCESS", "UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "ALREADY_INITIALIZED", //nolint:misspell // NVML spells it so
	"NOT_FOUND", "INSUFFICIENT_SIZE", "INSUFFICIENT_POWER", "DRIVER_NOT_LOADED", "TIMEOUT", "IRQ_ISSUE",
	"LIBRARY_NOT_FOUND", "FUNCTION_NOT_FOUND", "CORRUPTED_INFOROM", "GPU_IS_LOST", "RESET_REQUIRED",
	"OPERATING_SYSTEM", "LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "VGPU_ECC_NOT_SUPPORTED",
	"INSUFFICIENT_RESOURCES", "FREQ_NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH", "DEPRECATED", "NOT_READY",
	"GPU_NOT_FOUND", "INVALID_STATE", "RESET_TYPE_NOT_SUPPORTED",
}

const unknownCode = 999

// ParseFault reads a fault: FUNCTION=WHAT or FUNCTION:NTH=WHAT, where WHAT is
// hang, ignore, a code of NVML or its name: "nvmlDeviceSetMigMode:2=IN_USE".
// Without NTH the next call is meant.
func ParseFault(s string) (Fault, error) {
	function, what, ok := strings.Cut(s, "=")
	if !ok {
		return Fault{}, fmt.Errorf("%q is not a fault; write FUNCTION=WHAT or FUNCTION:NTH=WHAT, as in nvmlDeviceSetMigMode:2=IN_USE", s)
	}
	f := Fault{Function: function, Nth: 1}
	if before, after, found := strings.Cut(function, ":"); found {
		nth, err := strconv.Atoi(after)
		if err != nil {
			return Fault{}, fmt.Errorf("%q is not the number of a call; 1 is the next, 0 is every one", after)
		}
		f.Function, f.Nth = before, nth
	}
	switch a := Action(what); a {
	case Hang, Ignore:
		f.Action = a
		return f, f.check()
	}
	f.Action = Answer
	name := strings.TrimPrefix(strings.ToUpper(what), "NVML_")
	code := slices.Index(codes, strings.TrimPrefix(name, "ERROR_"))
	if code < 0 {
		n, err := strconv.Atoi(what)
		if err != nil {
			return Fault{}, fmt.Errorf("%q is neither hang nor ignore nor a code of NVML like IN_USE or 19", what)
		}
		code = n
	}
	f.Code = code
	return f, f.check()
}

func (f Fault) check() error {
	known := func(name string) bool {
		rest, ok := strings.CutPrefix(name, f.Function)
		return ok && (rest == "" || len(rest) == 3 && strings.HasPrefix(rest, "_v"))
	}
	switch {
	case !slices.ContainsFunc(driver.Names(), known):
		return fmt.Errorf("NVML has no function %q; its functions are named like nvmlDeviceSetMigMode", f.Function)
	case f.Nth < 0:
		return fmt.Errorf("a fault cannot strike at call %d; 1 is the next, 0 is every one", f.Nth)
	case f.Action == Answer && f.Code != unknownCode && (f.Code < 0 || f.Code >= len(codes)):
		return fmt.Errorf("NVML has no code %d; there are 0 to %d and %d", f.Code, len(codes)-1, unknownCode)
	case actionNumbers[f.Action] == 0:
		return fmt.Errorf("a fault cannot %q; it can %s, %s or %s", f.Action, Answer, Hang, Ignore)
	}
	return nil
}

var actionNumbers = map[Action]C.uint32_t{
	Answer: C.SIM_FAULT_ANSWER,
	Hang:   C.SIM_FAULT_HANG,
	Ignore: C.SIM_FAULT_IGNORE,
}

// SetFault lets calls of the driver go wrong.
func (h *Host) SetFault(f Fault) error {
	if err := f.check(); err != nil {
		return err
	}
	return h.locked(func(host *C.struct_sim_host) error {
		for i := range host.faults {
			if host.faults[i].function[0] != 0 {
				continue
			}
			host.faults[i].nth = C.uint32_t(f.Nth)
			host.faults[i].action = actionNumbers[f.Action]
			host.faults[i].code = C.uint32_t(f.Code)
			return put(host.faults[i].function[:], f.Function)
		}
		return fmt.Errorf("there are %d faults already; clear them first", len(host.faults))
	})
}

// ClearFaults takes all faults back.
func (h *Host) ClearFaults() error {
	return h.locked(func(host *C.struct_sim_host) error {
		clear(host.faults[:])
		return nil
	})
}

func faults(host *C.struct_sim_host) []Fault {
	var all []Fault
	for _, f := range host.faults {
		if f.function[0] == 0 {
			continue
		}
		fault := Fault{Function: text(f.function[:]), Nth: int(f.nth), Code: int(f.code)}
		for action, number := range actionNumbers {
			if number == f.action {
				fault.Action = action
			}
		}
		all = append(all, fault)
	}
	return all
}
