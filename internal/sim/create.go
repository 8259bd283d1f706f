//go:build cgo && linux

package sim

// #include "state.h"
import "C"

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"cosplay/driver"
	"cosplay/internal/resource"
)

// The numbers are equal: otherwise this does not compile.
var _ = [1]bool{}[maxGPUs-C.SIM_MAX_GPUS]

// Create creates a host with one GPU for each model in a folder and replaces an existing host: the libraries and the
// state, with MIG off, persistence off, default power and no clock lock.
func Create(dir string, models []resource.Model, opts Options) error {
	state, err := newState(models, opts)
	if err != nil {
		return err
	}
	return create(dir, state)
}

// create writes the files of a host with a state.
func create(dir string, state []byte) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	libraries, err := patchedLibraries(dir, nil)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Every user who can see a simulated host may change it, so its file is writable for all.
	if err := write(StatePath(dir), state, 0o666); err != nil {
		return err
	}
	for path, library := range libraries {
		if err := write(path, library, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// Relocate rewrites the libraries of the host in a folder if their content is outdated: they contain the path of the
// host's state, and lack the functions that a fault removes.
func Relocate(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	lacks, err := absent(dir)
	if err != nil {
		return err
	}
	libraries, err := patchedLibraries(dir, lacks)
	if err != nil {
		return err
	}
	for path, library := range libraries {
		if is, err := os.ReadFile(path); err == nil && bytes.Equal(is, library) {
			continue
		}
		if err := write(path, library, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, data []byte, mode os.FileMode) error {
	return renameio.WriteFile(path, data, mode, renameio.WithStaticPermissions(mode))
}

// patchedLibraries are the libraries of the host in a folder, by their paths,
// without the functions of NVML that it lacks.
func patchedLibraries(dir string, lacks []string) (map[string][]byte, error) {
	libraries := map[string][]byte{}
	for _, name := range []string{driver.NVML, driver.CUDA} {
		library, err := patchedLibrary(name, StatePath(dir))
		if err != nil {
			return nil, err
		}
		if name == driver.NVML {
			if err := hide(library, lacks); err != nil {
				return nil, err
			}
		}
		libraries[filepath.Join(dir, name)] = library
	}
	return libraries, nil
}

// hide removes function names from a library's exports. Each name is once in the library's string table, where the
// loader compares it.
func hide(library []byte, functions []string) error {
	if len(functions) == 0 {
		return nil
	}
	file, err := elf.NewFile(bytes.NewReader(library))
	if err != nil {
		return fmt.Errorf("reading the simulated driver: %w", err)
	}
	table := file.Section(".dynstr")
	if table == nil {
		return fmt.Errorf("the simulated driver has no table of names")
	}
	names := library[table.Offset : table.Offset+table.Size]
	for _, function := range functions {
		at := bytes.Index(names, []byte("\x00"+function+"\x00"))
		if at < 0 {
			return fmt.Errorf("the simulated driver exports no %s", function)
		}
		names[at+1] = '-'
	}
	return nil
}

// patchedLibrary returns a library with the path of its state in the space that its source reserves.
func patchedLibrary(name, state string) ([]byte, error) {
	library, err := driver.Library(name)
	if err != nil {
		return nil, err
	}
	if len(state) >= C.SIM_PATH_SIZE {
		return nil, fmt.Errorf("the path of the simulated host is too long: %s; move the project to a shorter one", state)
	}
	mark := []byte(C.SIM_PATH_MARK + "\x00")
	at := bytes.Index(library, mark)
	if at < 0 || bytes.Count(library, mark) != 1 {
		return nil, fmt.Errorf("the simulated driver in this binary has no room for its path; rebuild cosplay with make build")
	}
	place := library[at : at+C.SIM_PATH_SIZE]
	clear(place)
	copy(place, state)
	return library, nil
}

func newState(models []resource.Model, opts Options) ([]byte, error) {
	if len(models) == 0 || len(models) > maxGPUs {
		return nil, fmt.Errorf("a simulated host has 1 to %d GPUs, not %d", maxGPUs, len(models))
	}
	size := stateSize(len(models))
	words := make([]uint64, (size+7)/8) // aligned as C wants it
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
	host := view(data)
	host.version = C.SIM_VERSION
	host.gpu_count = C.uint32_t(len(models))
	host.size = C.uint64_t(len(data))
	host.cuda_version = C.uint32_t(cmp.Or(opts.CUDA, 13000))
	boot := sha256.Sum256([]byte("boot\x00" + opts.Seed))
	if err := errors.Join(
		put(host.magic[:], C.SIM_MAGIC),
		put(host.simulates[:], opts.Simulates),
		put(host.driver_version[:], cmp.Or(opts.Driver, "580.159.04")),
		put(host.boot_id[:], formatUUID(boot[:])),
	); err != nil {
		return nil, err
	}
	for i, m := range models {
		if err := setUp(&gpus(host)[i], m, i, opts.Seed); err != nil {
			return nil, fmt.Errorf("cannot simulate GPU %d, %q: %w", i, m.Name, err)
		}
	}
	return data, nil
}

// buses are the usual PCI buses of the GPUs in a machine with eight.
var buses = [8]C.uint32_t{0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB}

func setUp(gpu *C.struct_sim_gpu, m resource.Model, index int, seed string) error {
	id := sha256.Sum256(fmt.Appendf(nil, "gpu\x00%s\x00%d", seed, index))
	serial := fmt.Sprintf("165%010d", binary.BigEndian.Uint64(id[16:])%1e10)
	major, minor, err := capability(m.ComputeCapability)
	if err := errors.Join(put(gpu.name[:], m.Name), put(gpu.uuid[:], "GPU-"+formatUUID(id[:])), put(gpu.serial[:], serial), err); err != nil {
		return err
	}
	gpu.pci_domain = C.uint32_t(index / len(buses))
	gpu.pci_bus = buses[index%len(buses)]
	gpu.pci_device_id = C.uint32_t(generationOf(major, minor).deviceID)<<16 | 0x10DE
	gpu.capability_major, gpu.capability_minor = C.uint32_t(major), C.uint32_t(minor)
	gpu.architecture = C.uint32_t(generationOf(major, minor).architecture)
	gpu.brand = C.uint32_t(brand(m.Name))
	gpu.ecc = C.uint16_t(flag(!strings.Contains(m.Name, "GeForce")))

	gpu.sms = C.uint32_t(m.SMs)
	gpu.cores = C.uint32_t(float64(m.SMs) * m.FP32PerSM / 2) // an FMA is two operations of one lane
	gpu.memory_mib = C.uint32_t(m.MemoryMiB)
	gpu.l2_kib = C.uint32_t(m.L2MiB * 1024)
	bus := busBits(major, m.BandwidthGBs)
	gpu.bus_bits = C.uint32_t(bus)
	gpu.memory_clock_mhz = C.uint32_t(math.Round(m.BandwidthGBs * 1000 * 8 / float64(2*bus))) // two transfers a clock
	gpu.power_min_mw = C.uint32_t(m.PowerMinMW)
	gpu.power_default_mw = C.uint32_t(m.PowerDefaultMW)
	gpu.power_max_mw = C.uint32_t(m.PowerMaxMW)
	gpu.memory_slices = C.uint32_t(m.MemorySlices)
	gpu.compute_slices = C.uint32_t(m.ComputeSlices)
	gpu.temperature_c = 34
	gpu.power_limit_mw = gpu.power_default_mw

	if len(m.ClocksMHz) == 0 || len(m.ClocksMHz) > C.SIM_MAX_CLOCKS {
		return fmt.Errorf("it has %d SM clocks; 1 to %d can be kept", len(m.ClocksMHz), C.SIM_MAX_CLOCKS)
	}
	gpu.clock_count = C.uint32_t(len(m.ClocksMHz))
	for i, mhz := range m.ClocksMHz {
		gpu.clocks_mhz[i] = C.uint32_t(mhz)
	}
	if len(m.Profiles) > C.SIM_MAX_PROFILES || m.MemorySlices > C.SIM_MAX_STARTS {
		return fmt.Errorf("%d profiles of %d memory slices are more than can be kept", len(m.Profiles), m.MemorySlices)
	}
	gpu.profile_count = C.uint32_t(len(m.Profiles))
	for i, p := range m.Profiles {
		if err := setUpProfile(&gpu.profiles[i], p); err != nil {
			return err
		}
	}
	return nil
}

func setUpProfile(profile *C.struct_sim_profile, p resource.Profile) error {
	kind, err := profileKind(p)
	if err != nil {
		return err
	}
	if len(p.Starts) > C.SIM_MAX_STARTS {
		return fmt.Errorf("profile %s has more than %d placements", p.Name, C.SIM_MAX_STARTS)
	}
	profile.id = C.uint32_t(p.ID)
	profile.kind = C.uint32_t(kind)
	profile.sms = C.uint32_t(p.SMs)
	profile.memory_mib = C.uint32_t(p.MemoryMiB)
	profile.memory_slices = C.uint32_t(p.MemorySlices)
	profile.compute_slices = C.uint32_t(p.ComputeSlices)
	profile.max_instances = C.uint32_t(p.MaxInstances)
	profile.start_count = C.uint32_t(len(p.Starts))
	for i, start := range p.Starts {
		profile.starts[i] = C.uint32_t(start)
	}
	return put(profile.name[:], p.Name)
}

// kinds are NVML's numbers of GPU instance profiles by compute slices, for each suffix of a name. A single slice with
// twice the memory has its own number.
var kinds = map[string]map[int]int{
	"":        {1: 0, 2: 1, 3: 2, 4: 3, 7: 4, 8: 5, 6: 6},
	"+me":     {1: 7, 2: 8},
	"+gfx":    {1: 10, 2: 11, 4: 12},
	"-me":     {1: 13, 2: 14},
	"+me.all": {1: 15, 2: 16},
}

const doubleMemory = 9

func profileKind(p resource.Profile) (int, error) {
	suffix := ""
	if at := strings.IndexAny(p.Name, "+-"); at >= 0 {
		suffix = p.Name[at:]
	}
	if suffix == "" && p.ComputeSlices == 1 && p.MemorySlices == 2 {
		return doubleMemory, nil
	}
	kind, ok := kinds[suffix][p.ComputeSlices]
	if !ok {
		return 0, fmt.Errorf("NVML knows no GPU instance profile like %s with %d compute slices", p.Name, p.ComputeSlices)
	}
	return kind, nil
}

func capability(s string) (major, minor int, err error) {
	before, after, _ := strings.Cut(s, ".")
	major, err1 := strconv.Atoi(before)
	minor, err2 := strconv.Atoi(after)
	if err1 != nil || err2 != nil || min(major, minor) < 0 {
		return 0, 0, fmt.Errorf("%q is not a compute capability like 9.0", s)
	}
	return major, minor, nil
}

// generation is an architecture of GPUs, from a compute capability on.
type generation struct {
	capability   int // 10 * major + minor
	architecture int // NVML's number
	deviceID     int // PCI id of a well-known GPU
}

var generations = []generation{
	{100, 10, 0x2901}, {90, 9, 0x2335}, {89, 8, 0x26B9}, {80, 7, 0x20B2}, {75, 6, 0x1EB8}, {70, 5, 0x1DB6}, {0, 4, 0x15F8},
}

func generationOf(major, minor int) generation {
	return generations[slices.IndexFunc(generations, func(g generation) bool { return 10*major+minor >= g.capability })]
}

func brand(name string) int {
	switch {
	case strings.Contains(name, "GeForce"):
		return 5
	case strings.Contains(name, "Tesla"):
		return 2
	case strings.Contains(name, "RTX"):
		return 13
	}
	return 14
}

// busBits estimates the width of the memory bus: for stacked memory from its bandwidth, otherwise that of a large
// GPU. The clock then follows from the bandwidth.
func busBits(major int, bandwidthGBs float64) int {
	switch {
	case bandwidthGBs > 5500:
		return 8192
	case bandwidthGBs > 4050:
		return 6144
	case bandwidthGBs > 1300 && major != 12:
		return 5120
	case bandwidthGBs > 1300:
		return 512
	case major == 8 && bandwidthGBs > 920 && bandwidthGBs < 935:
		return 3072
	}
	return 384
}

func formatUUID(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func newUUID() (string, error) {
	var b [16]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil {
		return "", fmt.Errorf("no random numbers: %w", err)
	}
	return formatUUID(b[:]), nil
}
