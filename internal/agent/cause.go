package agent

import (
	"fmt"
	"strings"

	"cosplay/internal/prose"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

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
