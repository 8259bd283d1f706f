package agent

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
)

// Ending is how destroy ends without a call that worked at apply.
type Ending string

// The endings. After Leaves and Stops another destroy restores the rest once the call is
// available again.
const (
	Restores Ending = ""       // everything is restored
	Leaves   Ending = "leaves" // what needs the call is left and reported, the rest is restored; exit code 1
	Stops    Ending = "stops"  // nothing is changed; exit code 1
)

// Call is a function of NVML that the agent calls, and what cosplay does without it.
type Call struct {
	Name    string
	Feature resource.Feature // lost on a GPU without the function; "" is a required function
	Set     bool             // it changes the GPU: whether it is available is known only after a try
	Without string           // what cosplay does without it, for the documentation
	Destroy Ending
}

// Calls lists all functions of NVML that the agent calls.
func Calls() []Call { return slices.Clone(calls) }

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
var calls = []Call{
	{Name: "nvmlInit_v2", Without: stopsHost, Destroy: Stops},
	{Name: "nvmlShutdown", Without: "nothing changes, but the library has to export it"},
	{Name: "nvmlErrorString", Without: "the library has to export it"},
	{Name: "nvmlSystemGetDriverVersion", Without: "the driver's version is shown as unknown"},
	{Name: "nvmlDeviceGetCount_v2", Without: stopsHost, Destroy: Stops},
	{Name: "nvmlDeviceGetHandleByIndex_v2", Without: stopsGPU, Destroy: Stops},
	{Name: "nvmlDeviceGetUUID", Without: stopsGPU, Destroy: Stops},

	{Name: "nvmlDeviceGetName", Feature: resource.FigureName, Without: "the catalog has no figures for the GPU: those that NVML does not tell are missing"},
	{Name: "nvmlDeviceGetPciInfo_v3", Feature: resource.ReadingPCI, Without: "the PCI address is unknown; gpus and gpu cannot name the GPU by it"},
	{Name: "nvmlDeviceGetCudaComputeCapability", Feature: resource.FigureCapability, Without: "the catalog's compute capability and number of SMs"},
	{Name: "nvmlDeviceGetNumGpuCores", Feature: resource.FigureCores, Without: "the catalog's number of SMs"},
	{Name: "nvmlDeviceGetMemoryInfo", Feature: resource.FigureMemory, Without: "the catalog's memory size; memory in use is unknown"},
	{Name: "nvmlDeviceGetMaxClockInfo", Feature: resource.FigureBandwidth, Without: "the catalog's bandwidth; the list of SM clocks is read with the memory clock of nvmlDeviceGetSupportedMemoryClocks"},
	{Name: "nvmlDeviceGetMemoryBusWidth", Feature: resource.FigureBandwidth, Without: "the catalog's bandwidth"},
	{Name: "nvmlDeviceGetSupportedMemoryClocks", Feature: resource.FeatureClock, Without: "called only without nvmlDeviceGetMaxClockInfo; without both, " + noClock},

	{Name: "nvmlDeviceGetHandleByUUID", Feature: resource.FeatureClock, Without: noClock},
	{Name: "nvmlDeviceGetSupportedGraphicsClocks", Feature: resource.FeatureClock, Without: noClock},
	{Name: "nvmlDeviceGetClockInfo", Feature: resource.ReadingClock, Without: "the SM clock is unknown: a lock is set and not checked"},
	{Name: "nvmlDeviceGetCurrentClocksThrottleReasons", Feature: resource.ReadingThrottle, Without: "an SM clock below the lock proves nothing: only one above it is drift"},
	{Name: "nvmlDeviceSetGpuLockedClocks", Feature: resource.FeatureClock, Set: true, Without: noLock},
	{Name: "nvmlDeviceResetGpuLockedClocks", Feature: resource.FeatureClock, Set: true, Without: noDestroy, Destroy: Leaves},

	{Name: "nvmlDeviceGetPowerManagementLimit", Feature: resource.FeaturePower, Without: noPower},
	{Name: "nvmlDeviceGetPowerManagementDefaultLimit", Feature: resource.FeaturePower, Without: noPower},
	{Name: "nvmlDeviceGetPowerManagementLimitConstraints", Feature: resource.FeaturePower, Without: noPower},
	{Name: "nvmlDeviceSetPowerManagementLimit", Feature: resource.FeaturePower, Set: true, Without: noLimit, Destroy: Leaves},
	{Name: "nvmlDeviceGetPowerUsage", Feature: resource.ReadingDraw, Without: "the power draw is unknown"},
	{Name: "nvmlDeviceGetTemperature", Feature: resource.ReadingTemperature, Without: "the temperature is unknown"},

	{Name: "nvmlDeviceGetPersistenceMode", Feature: resource.FeaturePersistence, Without: "persistence mode is not managed; nor are SM clock and power limit, which the driver forgets where it is off"},
	{Name: "nvmlDeviceSetPersistenceMode", Feature: resource.FeaturePersistence, Set: true, Without: "the first apply that needs it finds out; from then on persistence mode is not managed; nor are SM clock and power limit where it is off", Destroy: Leaves},

	{Name: "nvmlDeviceGetComputeRunningProcesses_v3", Feature: resource.ReadingProcesses, Without: "a foreign process may use the GPU: SM clock and power limit are not changed unless slow_neighbours = true, and a whole GPU counts as shared; MIG mode and slices are, since the driver refuses to change what a process uses"},

	{Name: "nvmlDeviceGetMinorNumber", Feature: resource.ReadingProcesses, Without: "of the processes that block a change, only those are named that NVML lists"},

	{Name: "nvmlDeviceGetMigMode", Feature: resource.FeatureMIG, Without: noMIG},
	{Name: "nvmlDeviceGetGpuInstanceProfileInfoV", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetGpuInstancePossiblePlacements_v2", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetGpuInstances", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlGpuInstanceGetInfo", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetMaxMigDeviceCount", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetMigDeviceHandleByIndex", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetGpuInstanceId", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetComputeInstanceId", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceSetMigMode", Feature: resource.FeatureMIG, Set: true, Without: noMIGChange, Destroy: Leaves},
	{Name: "nvmlDeviceCreateGpuInstanceWithPlacement", Feature: resource.FeatureMIG, Set: true, Without: noMIGChange},
	{Name: "nvmlGpuInstanceGetComputeInstanceProfileInfo", Feature: resource.FeatureMIG, Set: true, Without: noMIGChange},
	{Name: "nvmlGpuInstanceCreateComputeInstance", Feature: resource.FeatureMIG, Set: true, Without: noMIGChange},
	{Name: "nvmlDeviceGetGpuInstanceById", Feature: resource.FeatureMIG, Set: true, Without: noDestroy, Destroy: Leaves},
	{Name: "nvmlGpuInstanceGetComputeInstanceById", Feature: resource.FeatureMIG, Set: true, Without: noDestroy, Destroy: Leaves},
	{Name: "nvmlComputeInstanceDestroy", Feature: resource.FeatureMIG, Set: true, Without: noDestroy, Destroy: Leaves},
	{Name: "nvmlGpuInstanceDestroy", Feature: resource.FeatureMIG, Set: true, Without: noDestroy, Destroy: Leaves},
}

// unavailable reports whether an error says that a call is not there for a GPU,
// and nothing of the GPU itself.
func unavailable(err error) bool {
	return slices.ContainsFunc([]nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_UNKNOWN},
		func(code nvml.Return) bool { return isCode(err, code) })
}

// degradation is the feature that a GPU loses by a failed call; false where the call is
// required, or where its code says that the GPU itself is out of order.
func degradation(err error) (resource.Degradation, bool) {
	at, known := failedCall(err)
	if !known || at.Code == int(nvml.ERROR_GPU_IS_LOST) || at.Code == int(nvml.ERROR_RESET_REQUIRED) {
		return resource.Degradation{}, false
	}
	i := slices.IndexFunc(calls, func(c Call) bool { return c.Name == at.Call })
	if i < 0 || calls[i].Feature == "" {
		return resource.Degradation{}, false
	}
	return resource.Degradation{Feature: calls[i].Feature, Call: at.Call, Code: at.Code, Message: at.Message, Set: calls[i].Set}, true
}
