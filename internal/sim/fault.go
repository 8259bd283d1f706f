package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cosplay/driver"
)

// Action is the effect of a fault on a call.
type Action string

// The actions of a fault.
const (
	Answer Action = "answer" // it does nothing and answers the code
	Hang   Action = "hang"   // it never returns
	Ignore Action = "ignore" // it does nothing and answers success
	Absent Action = "absent" // the library does not export the function
)

// Fault affects the nth call of a function from now on, once; with 0 it affects every call. A function's name without
// _v2 means all its versions; an absent function is only the named one.
type Fault struct {
	Function string
	GPU      *int // index of the GPU that the call is about; nil is any
	Nth      int
	Action   Action
	Code     int // what NVML answers
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
	function := f.Function
	if f.GPU != nil {
		function += "@" + strconv.Itoa(*f.GPU)
	}
	return fmt.Sprintf("%s:%d=%s", function, f.Nth, what)
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

// ParseFault reads a fault: FUNCTION[@GPU][:NTH]=WHAT, where WHAT is hang, ignore, absent, a code of NVML or its
// name: "nvmlDeviceSetMigMode@0:2=IN_USE". Without GPU, calls about every GPU are meant; without NTH, the next call.
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
	if before, after, found := strings.Cut(f.Function, "@"); found {
		gpu, err := strconv.Atoi(after)
		if err != nil || gpu < 0 {
			return Fault{}, fmt.Errorf("%q is not the index of a GPU", after)
		}
		f.Function, f.GPU = before, &gpu
	}
	switch a := Action(what); a {
	case Hang, Ignore, Absent:
		f.Action = a
		return f, f.check()
	case Answer: // its name is not for people: they give a code
	}
	f.Action = Answer
	code, err := parseCode(what)
	if errors.Is(err, strconv.ErrSyntax) {
		return Fault{}, fmt.Errorf("%q is neither hang, ignore, absent nor a code of NVML such as IN_USE or 19", what)
	}
	f.Code = code
	return f, f.check()
}

func parseCode(what string) (int, error) {
	name := strings.TrimPrefix(strings.ToUpper(what), "NVML_")
	name = strings.TrimPrefix(name, "ERROR_")
	if code := slices.Index(codes, name); code >= 0 {
		return code, nil
	}
	if name == "UNKNOWN" {
		return unknownCode, nil
	}
	code, err := strconv.Atoi(what)
	if err == nil {
		err = checkCode(code)
	}
	return code, err
}

func checkCode(code int) error {
	if code != unknownCode && (code < 0 || code >= len(codes)) {
		return fmt.Errorf("NVML has no code %d; valid codes are 0 to %d and %d", code, len(codes)-1, unknownCode)
	}
	return nil
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
	case f.Action == Answer && checkCode(f.Code) != nil:
		return checkCode(f.Code)
	case f.Action == Absent && f.GPU != nil:
		return fmt.Errorf("a function is absent for every GPU; leave @%d out", *f.GPU)
	case f.Action == Absent && !slices.Contains(driver.Names(), f.Function):
		return fmt.Errorf("NVML has no function %q; an absent function is named with its version, such as nvmlDeviceGetCount_v2", f.Function)
	case !slices.Contains([]Action{Answer, Hang, Ignore, Absent}, f.Action):
		return fmt.Errorf("a fault cannot %q; it can %s, %s, %s or %s", f.Action, Answer, Hang, Ignore, Absent)
	}
	return nil
}
