//go:build cgo && linux

package sim

// #include "state.h"
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "admin.h"
import "C"

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/agext/levenshtein"
)

// setting is an aspect of a GPU that Set can change.
type setting struct {
	key   string
	value string // its valid values, in words
	set   func(gpu *C.struct_sim_gpu, value string) error
}

var settings = []setting{
	{"mig", "on or off", onOrOff(setMIG)},
	{"mig-pending", "on or off", onOrOff(setMIGPending)},
	{"persistence", "on or off", onOrOff(func(gpu *C.struct_sim_gpu, on C.uint32_t) error { gpu.persistence = on; return nil })},
	{"power-limit", "watts", setPowerLimit},
	{"compute-mode", "default, prohibited or exclusive-process", setComputeMode},
	{"clock-lock", "MHz or none", setClockLock},
	{"process", "PID:MiB, PID:MiB:GPU-INSTANCE, PID:none or none", setProcess},
	{"temperature", "degrees Celsius", setTemperature},
	{"lost", "on or off, or the code that every call answers, such as RESET_REQUIRED", setLost},
	{"uuid-format", "uuid for MIG-UUID, or ids for MIG-GPU-UUID/GI/CI, which drivers before 470 give", setUUIDFormat},
	{"name", "what NVML calls the GPU", func(gpu *C.struct_sim_gpu, name string) error { return put(gpu.name[:], name) }},
	{"power-step", "watts that the driver rounds a power limit down to, or none", setPowerStep},
}

// Keys lists what Set can change, each with its valid values.
func Keys() []string {
	var keys []string
	for _, s := range settings {
		keys = append(keys, s.key+" ("+s.value+")")
	}
	return keys
}

// Set changes one aspect of a GPU without the driver's knowledge. For an unknown key or a value that the hardware
// would refuse, the error states the valid ones.
func (h *Host) Set(gpu int, key, value string) error {
	at := slices.IndexFunc(settings, func(s setting) bool { return s.key == key })
	if at < 0 {
		hint := ";"
		for _, s := range settings {
			if levenshtein.Distance(key, s.key, nil) <= len(key)/3 {
				hint = ", did you mean " + s.key + "?;"
			}
		}
		return fmt.Errorf("there is no setting %q%s there are %s", key, hint, strings.Join(Keys(), ", "))
	}
	return h.onGPU(gpu, func(g *C.struct_sim_gpu) error {
		if err := settings[at].set(g, value); err != nil {
			return fmt.Errorf("GPU %d: %s = %q: %w", gpu, key, value, err)
		}
		return nil
	})
}

// Made is what the host was made of, and whether SetCompute has been set.
func (h *Host) Made() (simulates string, compute bool, err error) {
	err = h.locked(func(host *C.struct_sim_host) error {
		simulates, compute = text(host.simulates[:]), host.compute != 0
		return nil
	})
	return simulates, compute, err
}

// SetCompute sets whether a program's launch of a kernel succeeds although nothing is computed. Otherwise it fails.
func (h *Host) SetCompute(none bool) error {
	return h.locked(func(host *C.struct_sim_host) error {
		host.compute = flag(none) // SIM_COMPUTE_NONE
		return nil
	})
}

func parseSwitch(value string) (C.uint32_t, error) {
	switch strings.ToLower(value) {
	case "on", "true", "1":
		return 1, nil
	case "off", "false", "0":
		return 0, nil
	}
	return 0, fmt.Errorf("it is on or off")
}

func onOrOff(set func(gpu *C.struct_sim_gpu, on C.uint32_t) error) func(*C.struct_sim_gpu, string) error {
	return func(gpu *C.struct_sim_gpu, value string) error {
		on, err := parseSwitch(value)
		if err != nil {
			return err
		}
		return set(gpu, on)
	}
}

func setMIG(gpu *C.struct_sim_gpu, on C.uint32_t) error {
	switch {
	case gpu.memory_slices == 0:
		return fmt.Errorf("this GPU has no MIG")
	case on == 0 && anyInstance(gpu):
		return fmt.Errorf("there are slices; destroy them first")
	case on != gpu.mig && anyProcess(gpu):
		return fmt.Errorf("there are processes on it; remove them first, or set mig-pending")
	}
	gpu.mig, gpu.mig_pending = on, on
	return nil
}

func setMIGPending(gpu *C.struct_sim_gpu, on C.uint32_t) error {
	if gpu.memory_slices == 0 {
		return fmt.Errorf("this GPU has no MIG")
	}
	gpu.mig_pending = on
	return nil
}

func setLost(gpu *C.struct_sim_gpu, value string) error {
	if on, err := parseSwitch(value); err == nil {
		gpu.lost = on
		return nil
	}
	code, err := parseCode(value)
	if err != nil || code < 2 {
		return fmt.Errorf("it is on, off, or a code of NVML such as RESET_REQUIRED")
	}
	gpu.lost = C.uint32_t(code)
	return nil
}

func setUUIDFormat(gpu *C.struct_sim_gpu, value string) error {
	byIDs, ok := map[string]C.uint16_t{"uuid": 0, "ids": 1}[value]
	if !ok {
		return fmt.Errorf("it is uuid or ids")
	}
	gpu.named_by_ids = byIDs
	return nil
}

func setPowerStep(gpu *C.struct_sim_gpu, value string) error {
	if value == "none" {
		gpu.power_step_w = 0
		return nil
	}
	watts, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(value, "W")), 10, 16)
	if err != nil {
		return fmt.Errorf("it is none or a whole number of watts")
	}
	gpu.power_step_w = C.uint16_t(watts)
	return nil
}

func setComputeMode(gpu *C.struct_sim_gpu, value string) error {
	modes := map[string]C.uint32_t{"default": 0, "prohibited": 2, "exclusive-process": 3}
	mode, known := modes[value]
	if !known {
		return fmt.Errorf("it is default, prohibited or exclusive-process")
	}
	gpu.compute_mode = mode
	return nil
}

func setPowerLimit(gpu *C.struct_sim_gpu, value string) error {
	watts, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(value, "W")), 64)
	low, high := float64(gpu.power_min_mw)/1000, float64(gpu.power_max_mw)/1000
	if err != nil || !(watts >= low && watts <= high) {
		return fmt.Errorf("it is between %g and %g W", low, high)
	}
	gpu.power_limit_mw = C.uint32_t(math.Round(watts * 1000))
	return nil
}

func setClockLock(gpu *C.struct_sim_gpu, value string) error {
	if value == "none" {
		gpu.lock_min_mhz, gpu.lock_max_mhz = 0, 0
		return nil
	}
	grid := gpu.clocks_mhz[:gpu.clock_count]
	mhz, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(value, "MHz")), 10, 32)
	if err != nil || !slices.Contains(grid, C.uint32_t(mhz)) {
		return fmt.Errorf("it is none or a clock of the GPU, from %d to %d MHz in steps of %d",
			grid[0], grid[len(grid)-1], step(grid))
	}
	gpu.lock_min_mhz, gpu.lock_max_mhz = C.uint32_t(mhz), C.uint32_t(mhz)
	return nil
}

func step(grid []C.uint32_t) int {
	if len(grid) < 2 {
		return 0
	}
	return int(grid[1] - grid[0])
}

func setTemperature(gpu *C.struct_sim_gpu, value string) error {
	degrees, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(value, "C")))
	if err != nil || degrees < 0 || degrees > 150 {
		return fmt.Errorf("it is between 0 and 150 C")
	}
	gpu.temperature_c = C.uint16_t(degrees)
	return nil
}

func setProcess(gpu *C.struct_sim_gpu, value string) error {
	if value == "none" {
		clear(gpu.processes[:])
		return nil
	}
	fields := strings.Split(value, ":")
	pid, err := strconv.ParseUint(fields[0], 10, 31)
	if err != nil || pid == 0 || len(fields) < 2 || len(fields) > 3 {
		return fmt.Errorf("it is written PID:MiB, with MIG on PID:MiB:GPU-INSTANCE; PID:none and none take it away")
	}
	if fields[1] == "none" {
		removeProcess(gpu, C.uint32_t(pid))
		return nil
	}
	mib, err := strconv.ParseUint(fields[1], 10, 31)
	if err != nil {
		return fmt.Errorf("%q is not a number of MiB", fields[1])
	}
	process := C.struct_sim_process{
		pid:              C.uint32_t(pid),
		memory_mib:       C.uint32_t(mib),
		gpu_instance:     C.SIM_WHOLE_GPU,
		compute_instance: C.SIM_WHOLE_GPU,
	}
	if gpu.mig != 0 || len(fields) == 3 {
		if err := placeProcess(gpu, &process, fields[2:]); err != nil {
			return err
		}
	}
	return addProcess(gpu, process)
}

// placeProcess finds the compute instance that a program runs in: the first of the GPU instance.
func placeProcess(gpu *C.struct_sim_gpu, process *C.struct_sim_process, fields []string) error {
	if len(fields) == 0 {
		return fmt.Errorf("MIG is on: say in which GPU instance, as PID:MiB:GPU-INSTANCE")
	}
	id, err := strconv.Atoi(fields[0])
	if err != nil || id < 0 || id >= len(gpu.instances) || gpu.instances[id].used == 0 {
		return fmt.Errorf("there is no GPU instance %s; cosplay sim show lists those that there are", fields[0])
	}
	for i, c := range gpu.instances[id].compute {
		if c.used != 0 {
			process.gpu_instance, process.compute_instance = C.int32_t(id), C.int32_t(i)
			return nil
		}
	}
	return fmt.Errorf("GPU instance %d has no compute instance to run in", id)
}

func addProcess(gpu *C.struct_sim_gpu, process C.struct_sim_process) error {
	removeProcess(gpu, process.pid)
	for i := range gpu.processes {
		if gpu.processes[i].pid == 0 {
			gpu.processes[i] = process
			return nil
		}
	}
	return fmt.Errorf("there is room for %d processes only", len(gpu.processes))
}

func removeProcess(gpu *C.struct_sim_gpu, pid C.uint32_t) {
	for i := range gpu.processes {
		if gpu.processes[i].pid == pid {
			gpu.processes[i] = C.struct_sim_process{}
		}
	}
}

func anyProcess(gpu *C.struct_sim_gpu) bool {
	return slices.ContainsFunc(gpu.processes[:], func(p C.struct_sim_process) bool { return p.pid != 0 })
}

func anyInstance(gpu *C.struct_sim_gpu) bool {
	return slices.ContainsFunc(gpu.instances[:], func(i C.struct_sim_gpu_instance) bool { return i.used != 0 })
}

// Reboot does what a restart of the machine does: it removes programs, slices, locks and limits, applies pending
// modes and switches persistence off. GA100 GPUs keep MIG mode, later ones do not. Faults stay.
func (h *Host) Reboot() error {
	id, err := newUUID()
	if err != nil {
		return err
	}
	return h.locked(func(host *C.struct_sim_host) error {
		clear(host.clients[:])
		for i := range gpus(host) {
			reboot(&gpus(host)[i])
		}
		return put(host.boot_id[:], id)
	})
}

func reboot(gpu *C.struct_sim_gpu) {
	if keepsMIG := gpu.capability_major == 8; !keepsMIG {
		gpu.mig_pending = 0
	}
	gpu.mig = gpu.mig_pending
	gpu.persistence = 0
	gpu.compute_mode = 0
	gpu.power_limit_mw = gpu.power_default_mw
	gpu.lock_min_mhz, gpu.lock_max_mhz = 0, 0
	gpu.lost = 0
	gpu.unlocked_mhz, gpu.low_clock, gpu.held_open = 0, 0, 0
	clear(gpu.instances[:])
	clear(gpu.processes[:])
}

// CreateSlice creates a slice as an admin would with nvidia-smi: a GPU instance of a profile at a start, and one
// compute instance that fills it. It returns the id of the GPU instance. If the driver refuses, it returns an error.
func (h *Host) CreateSlice(gpu int, profile string, start int) (int, error) {
	var found C.struct_sim_profile
	err := h.onGPU(gpu, func(g *C.struct_sim_gpu) error {
		if g.memory_slices == 0 {
			return fmt.Errorf("GPU %d has no MIG", gpu)
		}
		all := g.profiles[:g.profile_count]
		at := slices.IndexFunc(all, func(p C.struct_sim_profile) bool { return text(p.name[:]) == profile })
		if at < 0 {
			return fmt.Errorf("GPU %d has no profile %q; it has %s", gpu, profile, profileNames(all))
		}
		found = all[at]
		return nil
	})
	if err != nil {
		return 0, err
	}
	if start < 0 || !slices.Contains(found.starts[:found.start_count], C.uint32_t(start)) {
		return 0, fmt.Errorf("%s cannot start at %d; it can at %v", profile, start, found.starts[:found.start_count])
	}
	library := C.CString(LibraryPath(h.dir))
	defer C.free(unsafe.Pointer(library))
	var id C.uint
	failed := C.admin_create(library, C.uint(gpu), C.uint(found.id), C.uint(start), C.uint(found.memory_slices),
		C.uint(computeProfile(int(found.compute_slices))), &id)
	return int(id), adminError(gpu, failed)
}

// DestroySlice removes a GPU instance with its compute instances, whichever program created it. It fails while
// programs run there.
func (h *Host) DestroySlice(gpu, gpuInstance int) error {
	err := h.onGPU(gpu, func(g *C.struct_sim_gpu) error {
		if gpuInstance < 0 || gpuInstance >= len(g.instances) || g.instances[gpuInstance].used == 0 {
			return fmt.Errorf("GPU %d has no GPU instance %d; cosplay sim show lists those that there are", gpu, gpuInstance)
		}
		return nil
	})
	if err != nil {
		return err
	}
	library := C.CString(LibraryPath(h.dir))
	defer C.free(unsafe.Pointer(library))
	return adminError(gpu, C.admin_destroy(library, C.uint(gpu), C.uint(gpuInstance)))
}

func adminError(gpu int, failed C.struct_admin_error) error {
	if failed.why == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(failed.why))
	return fmt.Errorf("GPU %d: cannot %s: %s", gpu, C.GoString(failed.step), C.GoString(failed.why))
}

// computeProfile returns NVML's number of the compute instance profile with so many slices.
func computeProfile(slices int) int {
	if slices == 7 {
		return 4
	}
	return slices - 1
}

func profileNames(profiles []C.struct_sim_profile) []string {
	var names []string
	for _, p := range profiles {
		names = append(names, text(p.name[:]))
	}
	return names
}
