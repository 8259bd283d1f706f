//go:build cgo && linux

package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Ending is how destroy ends without a call that worked at apply.
type Ending string

// The endings. After Leaves and Stops another destroy restores the rest once the call is available again.
const (
	Restores Ending = ""       // everything is restored
	Leaves   Ending = "leaves" // what needs the call is left and reported, the rest is restored; exit code 1
	Stops    Ending = "stops"  // nothing is changed; exit code 1
)

// Call is a function of NVML that the agent calls, and what cosplay does without it.
type Call struct {
	Name     string
	Feature  resource.Feature // lost on a GPU without the function
	Optional bool             // no feature needs it; without Feature and Optional the function is required
	Set      bool             // it changes the GPU: whether it is available is known only after a try
	Without  string           // what cosplay does without it, for the documentation
	Destroy  Ending
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
	noEvents    = "watch finds changes of the GPU at its interval"
	noActivity  = "cosplay top does not show how busy MIG slices are"
	noDestroy   = "destroy restores the rest, reports what is left and exits with 1"
)

// calls are all functions of NVML that the agent calls. docs/reference/nvml.md has the same
// table; tests compare both with each other and with the source.
var calls = []Call{
	{Name: "nvmlInit_v2", Without: stopsHost, Destroy: Stops},
	{Name: "nvmlShutdown", Without: "nothing changes, but the library has to export it"},
	{Name: "nvmlErrorString", Without: "the library has to export it"},
	{Name: "nvmlSystemGetDriverVersion", Optional: true, Without: "the driver's version is shown as unknown"},
	{Name: "nvmlDeviceGetCount_v2", Without: stopsHost, Destroy: Stops},
	{Name: "nvmlDeviceGetHandleByIndex_v2", Without: stopsGPU, Destroy: Stops},
	{Name: "nvmlDeviceGetUUID", Without: stopsGPU, Destroy: Stops},

	{Name: "nvmlDeviceGetName", Feature: resource.FigureName, Without: "the catalog has no figures for the GPU: those that NVML does not report are missing"},
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

	{Name: "nvmlDeviceGetComputeMode", Feature: resource.FeatureComputeMode, Without: "the compute mode is not managed: MPS runs in the mode that the GPU has"},
	{Name: "nvmlDeviceSetComputeMode", Feature: resource.FeatureComputeMode, Set: true, Without: "the first apply that needs it finds out; from then on the compute mode is not managed", Destroy: Leaves},

	{Name: "nvmlDeviceGetComputeRunningProcesses_v3", Feature: resource.ReadingProcesses, Without: "a foreign process may use the GPU: SM clock and power limit are not changed unless slow_neighbours = true, and a whole GPU counts as shared; MIG mode and slices are, since the driver refuses to change what a process uses"},

	{Name: "nvmlDeviceGetUtilizationRates", Optional: true, Without: "the metrics lack the utilization of the GPU"},
	{Name: "nvmlGpmSampleAlloc", Optional: true, Without: noActivity},
	{Name: "nvmlGpmMigSampleGet", Optional: true, Without: noActivity},
	{Name: "nvmlGpmMetricsGet", Optional: true, Without: noActivity},
	{Name: "nvmlGpmSampleFree", Optional: true, Without: noActivity},
	{Name: "nvmlDeviceGetMinorNumber", Feature: resource.ReadingProcesses, Without: "of the processes that block a change, only those are named that NVML lists"},

	{Name: "nvmlEventSetCreate", Optional: true, Without: noEvents},
	{Name: "nvmlDeviceGetSupportedEventTypes", Optional: true, Without: noEvents},
	{Name: "nvmlDeviceRegisterEvents", Optional: true, Without: noEvents},
	{Name: "nvmlEventSetWait_v2", Optional: true, Without: noEvents},

	{Name: "nvmlDeviceGetMigMode", Feature: resource.FeatureMIG, Without: noMIG},
	{Name: "nvmlDeviceGetGpuInstanceProfileInfoV", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetGpuInstancePossiblePlacements_v2", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetGpuInstances", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlGpuInstanceGetInfo", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetMaxMigDeviceCount", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetMigDeviceHandleByIndex", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetGpuInstanceId", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlDeviceGetComputeInstanceId", Feature: resource.FeatureMIG, Without: noMIG, Destroy: Leaves},
	{Name: "nvmlComputeInstanceGetInfo_v2", Optional: true, Without: "a GPU instance counts as one slice, whose name is that of its first compute instance"},
	{Name: "nvmlDeviceSetMigMode", Feature: resource.FeatureMIG, Set: true, Without: noMIGChange, Destroy: Leaves},
	{Name: "nvmlDeviceCreateGpuInstanceWithPlacement", Feature: resource.FeatureMIG, Set: true, Without: noMIGChange},
	{Name: "nvmlGpuInstanceGetComputeInstanceProfileInfo", Feature: resource.FeatureMIG, Set: true, Without: noMIGChange},
	{Name: "nvmlGpuInstanceCreateComputeInstance", Feature: resource.FeatureMIG, Set: true, Without: noMIGChange},
	{Name: "nvmlGpuInstanceCreateComputeInstanceWithPlacement", Feature: resource.FeatureParts, Set: true, Without: "no session gets a slice that is a part of a GPU instance: those that ask for one are refused, the others get whole instances. If the library exports the function and the driver does not offer it, the first apply that needs it finds out"},
	{Name: "nvmlDeviceGetGpuInstanceById", Feature: resource.FeatureMIG, Set: true, Without: noDestroy, Destroy: Leaves},
	{Name: "nvmlGpuInstanceGetComputeInstanceById", Feature: resource.FeatureMIG, Set: true, Without: noDestroy, Destroy: Leaves},
	{Name: "nvmlComputeInstanceDestroy", Feature: resource.FeatureMIG, Set: true, Without: noDestroy, Destroy: Leaves},
	{Name: "nvmlGpuInstanceDestroy", Feature: resource.FeatureMIG, Set: true, Without: noDestroy, Destroy: Leaves},
}

// degradation is the feature that a GPU loses by a failed call; false where the call is
// required, or where its code says that the GPU itself is out of order.
func degradation(err error) (resource.Degradation, bool) {
	at, known := failedCall(err)
	if !known || at.Code == int(nvml.ERROR_GPU_IS_LOST) || at.Code == int(nvml.ERROR_RESET_REQUIRED) {
		return resource.Degradation{}, false
	}
	all := append(Calls(), timeSliceCalls...)
	i := slices.IndexFunc(all, func(c Call) bool { return c.Name == at.Call })
	if i < 0 || all[i].Feature == "" {
		return resource.Degradation{}, false
	}
	return resource.Degradation{Feature: all[i].Feature, Call: at.Call, Code: at.Code, Message: at.Message, Set: all[i].Set}, true
}

// adviceByCode says what an NVML code means, and what to do about it. A cause that the code
// does not prove is named as a possible one.
var adviceByCode = map[nvml.Return]prose.Advice{
	nvml.ERROR_GPU_IS_LOST:             {What: "The GPU is lost: it fell off the bus, or the driver has given it up.", Fix: "read the Xid errors in dmesg, then reboot the machine"},
	nvml.ERROR_RESET_REQUIRED:          {What: "The GPU requires a reset before it accepts this call.", Fix: "stop the processes on the GPU, then run nvidia-smi --gpu-reset, or reboot the machine"},
	nvml.ERROR_IN_USE:                  {What: "A process uses what this call changes.", Fix: "stop the process (nvidia-smi lists it), then run the same command again"},
	nvml.ERROR_NO_PERMISSION:           {What: "The driver refuses this call to the user of the agent.", Fix: "run cosplay doctor, which prints the sudoers line that cosplay needs"},
	nvml.ERROR_NOT_SUPPORTED:           {What: "The GPU or its driver does not support this call.", Fix: "leave the setting out of manage in the host block, or use another GPU"},
	nvml.ERROR_FUNCTION_NOT_FOUND:      {What: "The driver does not have this call.", Fix: "install a newer driver (535 or later)"},
	nvml.ERROR_DRIVER_NOT_LOADED:       {What: "The NVIDIA driver is not loaded.", Fix: "load it (modprobe nvidia) until nvidia-smi lists the GPUs"},
	nvml.ERROR_LIB_RM_VERSION_MISMATCH: {What: "The NVML library and the kernel driver have different versions. Possible cause: the driver was updated without a reboot.", Fix: "reboot the machine"},
	nvml.ERROR_TIMEOUT:                 {What: "The driver gave up waiting for the GPU.", Fix: "read the Xid errors in dmesg, then run the same command again"},
	nvml.ERROR_UNKNOWN:                 {What: "The driver reports an internal error and does not name its cause.", Fix: "read the Xid errors in dmesg; if it repeats, reset the GPU or reboot the machine"},
}

// adviceOn is the advice for the code of a call, empty where nothing is known beyond NVML's text. Another process explains
// one code only.
func adviceOn(call string, code nvml.Return) prose.Advice {
	switch {
	case code != nvml.ERROR_INSUFFICIENT_RESOURCES:
		return adviceByCode[code]
	case strings.Contains(call, "Create"):
		return prose.Advice{What: "The GPU has no room for this slice. Possible cause: another process has taken the slot since the plan.", Fix: planAgain}
	}
	return prose.Advice{What: fmt.Sprintf("The GPU lacks the resources for %s.", call), Fix: planAgain}
}

const planAgain = "run cosplay plan, which reads the GPU again"
