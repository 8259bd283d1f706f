package main

import (
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// askNVML is the program gonvml of the stories: what a monitor in a session sees
// of its GPU through go-nvml.
func askNVML() {
	fail := func(what string, code nvml.Return) {
		if code != nvml.SUCCESS {
			fmt.Fprintf(os.Stderr, "%s: %s\n", what, nvml.ErrorString(code))
			os.Exit(1)
		}
	}
	fail("Init", nvml.Init())
	count, code := nvml.DeviceGetCount()
	fail("DeviceGetCount", code)
	for i := range count {
		device, code := nvml.DeviceGetHandleByIndex(i)
		fail("DeviceGetHandleByIndex", code)
		name, code := device.GetName()
		fail("GetName", code)
		memory, code := device.GetMemoryInfo()
		fail("GetMemoryInfo", code)
		second, code := device.GetMemoryInfo_v2()
		fail("GetMemoryInfo_v2", code)
		_, power, code := device.GetPowerManagementLimitConstraints()
		fail("GetPowerManagementLimitConstraints", code)
		_, _, mig := device.GetMigMode()
		fmt.Printf("%d: %s, %d MiB, %d MiB, %d W, MIG %s\n", i, name, memory.Total>>20, second.Total>>20, power/1000, nvml.ErrorString(mig))
		processes, code := device.GetComputeRunningProcesses()
		fail("GetComputeRunningProcesses", code)
		for _, p := range processes {
			fmt.Printf("  process %d: %d MiB\n", p.Pid, p.UsedGpuMemory>>20)
		}
		if memory.Free+memory.Used != memory.Total {
			fail("free and used are not the total", nvml.ERROR_UNKNOWN)
		}
	}
}
