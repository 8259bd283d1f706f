//go:build cgo && linux

package disguise

// #cgo CFLAGS: -I${SRCDIR}/../../driver/facade
// #include "figures.h"
import "C"

import (
	"cmp"
	"fmt"
	"strings"
	"unsafe"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// The numbers are equal: otherwise this does not compile.
var _ = [1]bool{}[mostDevices-C.MOST_DEVICES]

// WriteFigures writes the figures file of a session in one step: those of the target for each device, which is a MIG slice
// or a whole GPU, in the order in which programs number them. It returns an error if a text is too long, or if there are
// no devices or more than 16.
func WriteFigures(path string, t resource.Target, devices ...resource.Handle) error {
	if len(devices) == 0 || len(devices) > mostDevices {
		return fmt.Errorf("writing what the session shows of its GPUs: a session has 1 to %d devices, not %d", mostDevices, len(devices))
	}
	version := C.uint32_t(C.FIGURES_VERSION)
	if len(devices) > 1 {
		version = C.FIGURES_VERSION_OF_SEVERAL
	}
	all := make([]C.struct_figures, len(devices))
	for i, given := range devices {
		all[i].version, all[i].size = version, C.sizeof_struct_figures
		if err := fill(&all[i], t, given); err != nil {
			return fmt.Errorf("writing what the session shows of its GPUs: %w", err)
		}
	}
	data := unsafe.Slice((*byte)(unsafe.Pointer(&all[0])), len(all)*C.sizeof_struct_figures)
	return durable.ReplaceFile(path, data, 0o444)
}

// fill puts the figures of a device into the form of the file.
func fill(c *C.struct_figures, t resource.Target, given resource.Handle) error {
	if err := cmp.Or(put(c.magic[:], C.FIGURES_MAGIC), put(c.name[:], t.Name), put(c.uuid[:], ShownUUID(given)),
		put(c.slice[:], given.UUID)); err != nil {
		return err
	}
	lowest, highest := PowerLimits(t)
	consumer := strings.Contains(t.Name, "GeForce") || strings.Contains(t.Name, "TITAN")
	c.consumer, c.own_slice = C.uint32_t(resource.Bit(consumer)), C.uint32_t(resource.Bit(!given.Shared))
	c.brand, c.architecture = C.uint32_t(brand(t.Name)), C.uint32_t(architectures[t.Architecture])
	c.memory_mib, c.bus_bits = C.uint32_t(t.MemoryMiB), C.uint32_t(t.BusBits)
	c.sms, c.cores = C.uint32_t(t.SMs), C.uint32_t(cores(t))
	c.pcie_generation = C.uint32_t(t.PCIeGeneration)
	c.power_limit_mw, c.power_default_mw, c.power_max_mw = C.uint32_t(highest), C.uint32_t(highest), C.uint32_t(highest)
	c.power_min_mw = C.uint32_t(lowest)
	c.clock_min_mhz, c.clock_max_mhz = C.uint32_t(min(idleClockMHz, t.BoostMHz)), C.uint32_t(t.BoostMHz)
	c.memory_clock_mhz = C.uint32_t(memoryClockMHz(t))
	return nil
}

// put writes a text and a final zero into an array. It returns an error if the array is too short.
func put(array []C.char, s string) error {
	if len(s) >= len(array) {
		return fmt.Errorf("%q is too long: at most %d bytes", s, len(array)-1)
	}
	for i := range len(s) {
		array[i] = C.char(s[i])
	}
	return nil
}
