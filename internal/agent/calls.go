package agent

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
)

// nvmlCall is a function of NVML that the agent calls, and what cosplay does
// without it. A GPU on which it is not available loses the feature; a function
// without a feature is required.
type nvmlCall struct {
	name    string
	feature resource.Feature
	set     bool   // it changes the GPU: whether it is available is known only once it was tried
	without string // what cosplay does where it is not available, for the documentation
	destroy Ending // how destroy ends where it is not available any more
}

// Ending is how destroy ends without a call that worked at apply.
type Ending string

// The endings. After Leaves and Stops another destroy restores the rest once the call is
// available again.
const (
	Restores Ending = ""       // everything is restored
	Leaves   Ending = "leaves" // what needs the call is left and reported, the rest is restored; exit code 1
	Stops    Ending = "stops"  // nothing is changed; exit code 1
)

// Call is a function of NVML that cosplay's agent calls.
type Call struct {
	Name    string
	Feature resource.Feature // given up on a GPU without it; "" is a required call
	Set     bool             // it changes the GPU
	Without string           // what cosplay does without it
	Destroy Ending
}

// Calls lists them all.
func Calls() []Call {
	all := make([]Call, 0, len(calls))
	for _, c := range calls {
		all = append(all, Call{Name: c.name, Feature: c.feature, Set: c.set, Without: c.without, Destroy: c.destroy})
	}
	return all
}

// What cosplay does without a call, where several calls have the same effect.
const (
	stopsHost   = "no command reads the host: every command stops with the error"
	stopsGPU    = "the GPU is unusable: cosplay leaves it as it is and uses the others"
	noMIG       = "MIG is not managed: slices that exist are left as they are, sessions get whole GPUs"
	noMIGChange = "the first apply that needs it finds out; from then on MIG is not managed"
	noClock     = "the SM clock is not managed: sessions run at the clock that the GPU has"
	noLock      = "the first apply that needs it finds out; from then on the SM clock is not managed"
	noPower     = "the power limit is not managed"
	noLimit     = "the first apply that needs it finds out; from then on the power limit is not managed"
	noDestroy   = "destroy restores the rest, reports what is left and exits with 1"
)

// calls are all functions of NVML that the agent calls. docs/nvml.md has the same
// table; tests compare both with each other and with the source.
var calls = []nvmlCall{
	{name: "nvmlInit_v2", without: stopsHost, destroy: Stops},
	{name: "nvmlShutdown", without: "nothing changes, but the library has to export it"},
	{name: "nvmlErrorString", without: "the library has to export it"},
	{name: "nvmlSystemGetDriverVersion", without: "the driver's version is shown as unknown"},
	{name: "nvmlDeviceGetCount_v2", without: stopsHost, destroy: Stops},
	{name: "nvmlDeviceGetHandleByIndex_v2", without: stopsGPU, destroy: Stops},
	{name: "nvmlDeviceGetUUID", without: stopsGPU, destroy: Stops},

	{name: "nvmlDeviceGetName", feature: resource.FigureName, without: "the catalog has no figures for the GPU: those that NVML does not tell are missing"},
	{name: "nvmlDeviceGetPciInfo_v3", feature: resource.ReadingPCI, without: "the PCI address is unknown; gpus and gpu cannot name the GPU by it"},
	{name: "nvmlDeviceGetCudaComputeCapability", feature: resource.FigureCapability, without: "the catalog's compute capability and number of SMs"},
	{name: "nvmlDeviceGetNumGpuCores", feature: resource.FigureCores, without: "the catalog's number of SMs"},
	{name: "nvmlDeviceGetMemoryInfo", feature: resource.FigureMemory, without: "the catalog's memory size; memory in use is unknown"},
	{name: "nvmlDeviceGetMaxClockInfo", feature: resource.FigureBandwidth, without: "the catalog's bandwidth; the list of SM clocks is read with the memory clock of nvmlDeviceGetSupportedMemoryClocks"},
	{name: "nvmlDeviceGetMemoryBusWidth", feature: resource.FigureBandwidth, without: "the catalog's bandwidth"},
	{name: "nvmlDeviceGetSupportedMemoryClocks", feature: resource.FeatureClock, without: "called only without nvmlDeviceGetMaxClockInfo; without both, " + noClock},

	{name: "nvmlDeviceGetHandleByUUID", feature: resource.FeatureClock, without: noClock},
	{name: "nvmlDeviceGetSupportedGraphicsClocks", feature: resource.FeatureClock, without: noClock},
	{name: "nvmlDeviceGetClockInfo", feature: resource.ReadingClock, without: "the SM clock is unknown: a lock is set and not checked"},
	{name: "nvmlDeviceGetCurrentClocksThrottleReasons", feature: resource.ReadingThrottle, without: "an SM clock below the lock proves nothing: only one above it is drift"},
	{name: "nvmlDeviceSetGpuLockedClocks", feature: resource.FeatureClock, set: true, without: noLock},
	{name: "nvmlDeviceResetGpuLockedClocks", feature: resource.FeatureClock, set: true, without: noDestroy, destroy: Leaves},

	{name: "nvmlDeviceGetPowerManagementLimit", feature: resource.FeaturePower, without: noPower},
	{name: "nvmlDeviceGetPowerManagementDefaultLimit", feature: resource.FeaturePower, without: noPower},
	{name: "nvmlDeviceGetPowerManagementLimitConstraints", feature: resource.FeaturePower, without: noPower},
	{name: "nvmlDeviceSetPowerManagementLimit", feature: resource.FeaturePower, set: true, without: noLimit, destroy: Leaves},
	{name: "nvmlDeviceGetPowerUsage", feature: resource.ReadingDraw, without: "the power draw is unknown"},
	{name: "nvmlDeviceGetTemperature", feature: resource.ReadingTemperature, without: "the temperature is unknown"},

	{name: "nvmlDeviceGetPersistenceMode", feature: resource.FeaturePersistence, without: "persistence mode is not managed; nor are SM clock and power limit, which the driver forgets where it is off"},
	{name: "nvmlDeviceSetPersistenceMode", feature: resource.FeaturePersistence, set: true, without: "the first apply that needs it finds out; from then on persistence mode is not managed; nor are SM clock and power limit where it is off", destroy: Leaves},

	{name: "nvmlDeviceGetComputeRunningProcesses_v3", feature: resource.ReadingProcesses, without: "a foreign process may use the GPU: SM clock and power limit are not changed unless slow_neighbours = true, and a whole GPU counts as shared; MIG mode and slices are, since the driver refuses to change what a process uses"},

	{name: "nvmlDeviceGetMinorNumber", feature: resource.ReadingProcesses, without: "of the processes that block a change, only those are named that NVML lists"},

	{name: "nvmlDeviceGetMigMode", feature: resource.FeatureMIG, without: noMIG},
	{name: "nvmlDeviceGetGpuInstanceProfileInfoV", feature: resource.FeatureMIG, without: noMIG, destroy: Leaves},
	{name: "nvmlDeviceGetGpuInstancePossiblePlacements_v2", feature: resource.FeatureMIG, without: noMIG, destroy: Leaves},
	{name: "nvmlDeviceGetGpuInstances", feature: resource.FeatureMIG, without: noMIG, destroy: Leaves},
	{name: "nvmlGpuInstanceGetInfo", feature: resource.FeatureMIG, without: noMIG, destroy: Leaves},
	{name: "nvmlDeviceGetMaxMigDeviceCount", feature: resource.FeatureMIG, without: noMIG, destroy: Leaves},
	{name: "nvmlDeviceGetMigDeviceHandleByIndex", feature: resource.FeatureMIG, without: noMIG, destroy: Leaves},
	{name: "nvmlDeviceGetGpuInstanceId", feature: resource.FeatureMIG, without: noMIG, destroy: Leaves},
	{name: "nvmlDeviceGetComputeInstanceId", feature: resource.FeatureMIG, without: noMIG, destroy: Leaves},
	{name: "nvmlDeviceSetMigMode", feature: resource.FeatureMIG, set: true, without: noMIGChange, destroy: Leaves},
	{name: "nvmlDeviceCreateGpuInstanceWithPlacement", feature: resource.FeatureMIG, set: true, without: noMIGChange},
	{name: "nvmlGpuInstanceGetComputeInstanceProfileInfo", feature: resource.FeatureMIG, set: true, without: noMIGChange},
	{name: "nvmlGpuInstanceCreateComputeInstance", feature: resource.FeatureMIG, set: true, without: noMIGChange},
	{name: "nvmlDeviceGetGpuInstanceById", feature: resource.FeatureMIG, set: true, without: noDestroy, destroy: Leaves},
	{name: "nvmlGpuInstanceGetComputeInstanceById", feature: resource.FeatureMIG, set: true, without: noDestroy, destroy: Leaves},
	{name: "nvmlComputeInstanceDestroy", feature: resource.FeatureMIG, set: true, without: noDestroy, destroy: Leaves},
	{name: "nvmlGpuInstanceDestroy", feature: resource.FeatureMIG, set: true, without: noDestroy, destroy: Leaves},
}

var callNamed = func() map[string]nvmlCall {
	all := make(map[string]nvmlCall, len(calls))
	for _, c := range calls {
		all[c.name] = c
	}
	return all
}()

// unavailable reports whether an error says that a call is not there for a GPU,
// and nothing of the GPU itself.
func unavailable(err error) bool {
	at, known := failedCall(err)
	if !known {
		return false
	}
	switch nvml.Return(at.Code) {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_UNKNOWN:
		return true
	}
	return false
}

// degradation is what a failed call costs a GPU; false where the call is required,
// or where its code says that the GPU itself is out of order.
func degradation(err error) (resource.Degradation, bool) {
	at, known := failedCall(err)
	if !known || at.Code == int(nvml.ERROR_GPU_IS_LOST) || at.Code == int(nvml.ERROR_RESET_REQUIRED) || callNamed[at.Call].feature == "" {
		return resource.Degradation{}, false
	}
	c := callNamed[at.Call]
	return resource.Degradation{Feature: c.feature, Call: c.name, Code: at.Code, Message: at.Message, Set: c.set}, true
}
