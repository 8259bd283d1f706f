package agent

import (
	"fmt"
	"strings"

	"cosplay/internal/prose"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// adviceOn says what an NVML code means for a call, and what to do about it. A cause
// that the code does not prove is named as a possible one. The advice is empty where
// nothing more is known than NVML's own text.
func adviceOn(call string, code nvml.Return) prose.Advice {
	switch code {
	case nvml.ERROR_GPU_IS_LOST:
		return prose.Advice{What: "The GPU is lost: it fell off the bus, or the driver has given it up.", Fix: "read the Xid errors in dmesg, then reboot the machine"}
	case nvml.ERROR_RESET_REQUIRED:
		return prose.Advice{What: "The GPU requires a reset before it accepts this call.", Fix: "stop the processes on the GPU, then run nvidia-smi --gpu-reset, or reboot the machine"}
	case nvml.ERROR_IN_USE:
		return prose.Advice{What: "A process uses what this call changes.", Fix: "stop the process (nvidia-smi lists it), then run the same command again"}
	case nvml.ERROR_INSUFFICIENT_RESOURCES:
		return insufficient(call)
	case nvml.ERROR_NO_PERMISSION:
		return prose.Advice{What: "The driver refuses this call to the user of the agent.", Fix: "run cosplay doctor, which prints the sudoers line that cosplay needs"}
	case nvml.ERROR_NOT_SUPPORTED:
		return prose.Advice{What: "The GPU or its driver does not support this call.", Fix: "leave the setting out of manage in the host block, or use another GPU"}
	case nvml.ERROR_FUNCTION_NOT_FOUND:
		return prose.Advice{What: "The driver does not have this call.", Fix: "install a newer driver (535 or later)"}
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return prose.Advice{What: "The NVIDIA driver is not loaded.", Fix: "load it (modprobe nvidia) until nvidia-smi lists the GPUs"}
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return prose.Advice{What: "The NVML library and the kernel driver have different versions. Possible cause: the driver was updated without a reboot.", Fix: "reboot the machine"}
	case nvml.ERROR_TIMEOUT:
		return prose.Advice{What: "The driver gave up waiting for the GPU.", Fix: "read the Xid errors in dmesg, then run the same command again"}
	case nvml.ERROR_UNKNOWN:
		return prose.Advice{What: "The driver reports an internal error and does not name its cause.", Fix: "read the Xid errors in dmesg; if it repeats, reset the GPU or reboot the machine"}
	}
	return prose.Advice{}
}

// insufficient is the one code that a process which was faster explains.
func insufficient(call string) prose.Advice {
	if strings.Contains(call, "Create") {
		return prose.Advice{What: "The GPU has no room for this slice. Possible cause: another process has taken the slot since the plan.", Fix: "run cosplay plan, which reads the GPU again"}
	}
	return prose.Advice{What: fmt.Sprintf("The GPU lacks the resources for %s.", call), Fix: "run cosplay plan, which reads the GPU again"}
}
