package disguise

// #cgo CFLAGS: -I${SRCDIR}/../../driver/facade
// #include "figures.h"
import "C"

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

const (
	idleClockMHz = 300 // typical idle clock of cards since 2016
	laneGroup    = 64  // the number of lanes of an SM is a multiple of it
)

// ShownUUID returns the UUID of a session's GPU: that of its slice, or of the whole GPU. An earlier driver's name of
// instance ids is no UUID, so one is derived from it.
func ShownUUID(given resource.Handle) string {
	if !given.NamedByIDs() {
		return "GPU-" + strings.TrimPrefix(strings.TrimPrefix(given.UUID, "MIG-"), "GPU-")
	}
	sum := sha256.Sum256([]byte(given.UUID))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// PowerLimits are the lowest and the highest power limit that a session shows, in mW. The catalog has the highest one,
// which is the default; typical GPUs go down to half of it.
func PowerLimits(t resource.Target) (lowestMW, highestMW int) {
	return t.PowerW / 2 * 1000, t.PowerW * 1000
}

var architectures = map[string]int{
	"maxwell": 3, "pascal": 4, "volta": 5, "turing": 6, "ampere": 7, "ada": 8, "hopper": 9, "blackwell": 10,
}

func brand(name string) int {
	for _, b := range []struct {
		word   string
		number int
	}{{"GeForce", 5}, {"TITAN", 6}, {"Tesla", 2}, {"Quadro RTX", 12}, {"Quadro", 1}, {"NVIDIA RTX", 13}} {
		if strings.Contains(name, b.word) {
			return b.number
		}
	}
	return 14 // NVIDIA
}

// cores returns the number of lanes that give the FP32 rate at the boost clock, with two operations per lane and
// clock.
func cores(t resource.Target) int {
	if t.SMs == 0 || t.BoostMHz == 0 {
		return 0
	}
	perSM := t.FP32TFLOPS * 1e6 / float64(2*t.BoostMHz*t.SMs)
	return t.SMs * laneGroup * max(1, int(math.Round(perSM/laneGroup)))
}

func memoryClockMHz(t resource.Target) int {
	if t.BusBits == 0 {
		return 0
	}
	return int(math.Round(t.BandwidthGBs * 1000 * 8 / float64(2*t.BusBits)))
}

// mostDevices is the largest number of devices in one session.
const mostDevices = C.MOST_DEVICES

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
