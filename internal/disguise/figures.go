package disguise

// #cgo CFLAGS: -I${SRCDIR}/../../driver/facade
// #include "figures.h"
import "C"

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// Figures are the values that a session shows of one of its GPUs.
type Figures struct {
	Name  string // "NVIDIA GeForce RTX 2060"
	UUID  string // as shown: "GPU-..."
	Slice string // the driver's name: "MIG-...", or "GPU-..." for a whole GPU

	Brand          int  // NVML's number
	Architecture   int  // NVML's number
	Consumer       bool // a gaming GPU: no ECC, no application clocks
	MemoryMiB      int
	BusBits        int
	SMs            int
	Cores          int // FP32 lanes
	PCIeGeneration int

	PowerMW    int // the limit: default and maximum
	PowerMinMW int

	ClockMinMHz    int // of the SMs
	ClockMaxMHz    int
	MemoryClockMHz int

	OwnSlice bool // no other process uses the slice: all use that the driver reports counts
}

const (
	idleClockMHz = 300 // typical idle clock of cards since 2016
	laneGroup    = 64  // the number of lanes of an SM is a multiple of it
)

// shownUUID returns the UUID of a session's GPU: that of its slice, or of the whole GPU. An earlier driver's name of
// instance ids is no UUID, so one is derived from it.
func shownUUID(given resource.Handle) string {
	if !given.NamedByIDs() {
		return "GPU-" + strings.TrimPrefix(strings.TrimPrefix(given.UUID, "MIG-"), "GPU-")
	}
	sum := sha256.Sum256([]byte(given.UUID))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// FiguresOf returns the figures of one device of a session. given is its MIG slice or whole GPU. Figures that the catalog
// does not have are typical values: the lowest power limit is half of the highest, and memory transfers twice per
// clock.
func FiguresOf(s resource.Session, given resource.Handle) Figures {
	t := s.Target
	consumer := strings.Contains(t.Name, "GeForce") || strings.Contains(t.Name, "TITAN")
	return Figures{
		Name:  t.Name,
		UUID:  shownUUID(given),
		Slice: given.UUID,

		Brand:          brand(t.Name),
		Architecture:   architectures[t.Architecture],
		Consumer:       consumer,
		MemoryMiB:      t.MemoryMiB,
		BusBits:        t.BusBits,
		SMs:            t.SMs,
		Cores:          cores(t),
		PCIeGeneration: t.PCIeGeneration,

		PowerMW:    t.PowerW * 1000,
		PowerMinMW: t.PowerW / 2 * 1000,

		ClockMinMHz:    min(idleClockMHz, t.BoostMHz),
		ClockMaxMHz:    t.BoostMHz,
		MemoryClockMHz: memoryClockMHz(t),

		OwnSlice: !given.Shared,
	}
}

// AllFigures returns the figures of each device of a session, of which given is the first.
func AllFigures(s resource.Session, given resource.Handle) []Figures {
	var all []Figures
	for _, device := range s.Devices(given) {
		all = append(all, FiguresOf(s, device))
	}
	return all
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

// WriteFigures writes the figures file of a session in one step: the figures of each of its devices, in the order in
// which programs number them. It returns an error if a text is too long, or if there are no devices or more than 16.
func WriteFigures(path string, devices ...Figures) error {
	if len(devices) == 0 || len(devices) > mostDevices {
		return fmt.Errorf("writing what the session shows of its GPUs: a session has 1 to %d devices, not %d", mostDevices, len(devices))
	}
	version := C.uint32_t(C.FIGURES_VERSION)
	if len(devices) > 1 {
		version = C.FIGURES_VERSION_OF_SEVERAL
	}
	all := make([]C.struct_figures, len(devices))
	for i, f := range devices {
		all[i].version, all[i].size = version, C.sizeof_struct_figures
		if err := f.fill(&all[i]); err != nil {
			return fmt.Errorf("writing what the session shows of its GPUs: %w", err)
		}
	}
	data := unsafe.Slice((*byte)(unsafe.Pointer(&all[0])), len(all)*C.sizeof_struct_figures)
	return durable.ReplaceFile(path, data, 0o444)
}

// fill puts the figures of a device into the form of the file.
func (f Figures) fill(c *C.struct_figures) error {
	for _, field := range []struct {
		to []C.char
		s  string
	}{
		{c.magic[:], C.FIGURES_MAGIC},
		{c.name[:], f.Name},
		{c.uuid[:], f.UUID},
		{c.slice[:], f.Slice},
	} {
		if err := put(field.to, field.s); err != nil {
			return err
		}
	}
	if f.Consumer {
		c.consumer = 1
	}
	if f.OwnSlice {
		c.own_slice = 1
	}
	c.brand, c.architecture = C.uint32_t(f.Brand), C.uint32_t(f.Architecture)
	c.memory_mib, c.bus_bits = C.uint32_t(f.MemoryMiB), C.uint32_t(f.BusBits)
	c.sms, c.cores = C.uint32_t(f.SMs), C.uint32_t(f.Cores)
	c.pcie_generation = C.uint32_t(f.PCIeGeneration)
	c.power_limit_mw, c.power_default_mw, c.power_max_mw = C.uint32_t(f.PowerMW), C.uint32_t(f.PowerMW), C.uint32_t(f.PowerMW)
	c.power_min_mw = C.uint32_t(f.PowerMinMW)
	c.clock_min_mhz, c.clock_max_mhz = C.uint32_t(f.ClockMinMHz), C.uint32_t(f.ClockMaxMHz)
	c.memory_clock_mhz = C.uint32_t(f.MemoryClockMHz)
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
