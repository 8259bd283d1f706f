//go:build cgo && linux

package sim

// #cgo CFLAGS: -I${SRCDIR}/../../driver/sim
// #include "state.h"
import "C"

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"cosplay/internal/resource"
)

// Host is an open simulated host.
type Host struct {
	dir  string
	file *os.File
	data []byte
	turn sync.Mutex // the lock of the file does not hold within a process
}

// Open opens the host in a folder. It fails if the file is not a host, or another version of cosplay created it.
func Open(dir string) (*Host, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, stateName)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no simulated host in %s; run cosplay plan or apply once, which makes it", dir)
	}
	if err != nil {
		return nil, err
	}
	data, err := mapState(file)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Host{dir: dir, file: file, data: data}, nil
}

// Close releases the host; its state stays.
func (h *Host) Close() error {
	return errors.Join(unix.Munmap(h.data), h.file.Close())
}

// BootID identifies the present boot of the host in a folder.
func BootID(dir string) (id string, err error) {
	file, err := os.Open(StatePath(dir))
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := lock(file, unix.LOCK_SH); err != nil {
		return "", err
	}
	var host C.struct_sim_host // read and not mapped: that would check all GPUs
	head := unsafe.Slice((*byte)(unsafe.Pointer(&host)), unsafe.Offsetof(host.boot_id)+unsafe.Sizeof(host.boot_id))
	if _, err := io.ReadFull(file, head); err != nil || text(host.magic[:]) != C.SIM_MAGIC {
		return "", notAHost(file.Name())
	}
	return text(host.boot_id[:]), nil
}

// lockTime is how long cosplay waits for a program of the host: each can lock the state, and keep it locked.
const lockTime = 10 * time.Second

func lock(file *os.File, how int) error {
	for deadline := time.Now().Add(lockTime); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		held := errors.Is(err, unix.EWOULDBLOCK)
		switch {
		case held && time.Now().After(deadline):
			return fmt.Errorf("a program has had the lock of the simulated host's file %s for %s. Fix: end it; lslocks shows which", file.Name(), lockTime)
		case err != nil && !held && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("cannot lock %s: %w", file.Name(), err)
		case err == nil:
			return nil
		}
	}
}

func mapState(file *os.File) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < C.sizeof_struct_sim_host {
		return nil, notAHost(file.Name())
	}
	// For as many GPUs as a host can have, so that the file may grow.
	data, err := unix.Mmap(int(file.Fd()), 0, stateSize(maxGPUs), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", file.Name(), err)
	}
	if err := check(file.Name(), view(data), info.Size()); err != nil {
		return nil, errors.Join(err, unix.Munmap(data))
	}
	return data, nil
}

func check(path string, host *C.struct_sim_host, size int64) error {
	if text(host.magic[:]) != C.SIM_MAGIC {
		return notAHost(path)
	}
	if host.version != C.SIM_VERSION {
		return fmt.Errorf("%s is a simulated host of another version of cosplay (%d, not %d); remove its folder to recreate it",
			path, host.version, C.SIM_VERSION)
	}
	want := stateSize(int(host.gpu_count))
	if host.gpu_count > C.SIM_MAX_GPUS || host.size != C.uint64_t(want) || size != int64(want) {
		return fmt.Errorf("%s is damaged: %d bytes where %d belong; remove its folder to recreate the host", path, size, want)
	}
	for i := range gpus(host) {
		if !sound(&gpus(host)[i]) {
			return fmt.Errorf("%s is damaged: GPU %d has invalid values; remove its folder to recreate the host", path, i)
		}
	}
	return nil
}

func notAHost(path string) error {
	return fmt.Errorf("%s is not a simulated host; remove it or name another folder", path)
}

// sound reports whether every index is within its array.
func sound(gpu *C.struct_sim_gpu) bool {
	if gpu.clock_count == 0 || gpu.clock_count > C.SIM_MAX_CLOCKS || gpu.profile_count > C.SIM_MAX_PROFILES {
		return false
	}
	if slices.ContainsFunc(gpu.profiles[:gpu.profile_count], func(p C.struct_sim_profile) bool { return p.start_count > C.SIM_MAX_STARTS }) {
		return false
	}
	return !slices.ContainsFunc(gpu.instances[:], func(i C.struct_sim_gpu_instance) bool { return i.used != 0 && i.profile >= gpu.profile_count })
}

func stateSize(gpuCount int) int {
	return C.sizeof_struct_sim_host + gpuCount*C.sizeof_struct_sim_gpu
}

func view(data []byte) *C.struct_sim_host {
	return (*C.struct_sim_host)(unsafe.Pointer(unsafe.SliceData(data)))
}

// gpus is the open-ended array at the end of the host's struct.
func gpus(host *C.struct_sim_host) []C.struct_sim_gpu {
	first := (*C.struct_sim_gpu)(unsafe.Add(unsafe.Pointer(host), C.sizeof_struct_sim_host))
	return unsafe.Slice(first, int(host.gpu_count))
}

// locked runs f while no call into the driver is under way.
func (h *Host) locked(f func(*C.struct_sim_host) error) error {
	h.turn.Lock()
	defer h.turn.Unlock()
	if err := lock(h.file, unix.LOCK_EX); err != nil {
		return err
	}
	h.sweep(view(h.data))
	err := f(view(h.data))
	return errors.Join(err, unix.Flock(int(h.file.Fd()), unix.LOCK_UN))
}

// sweep removes programs that ended without closing the driver, as the drivers do.
func (h *Host) sweep(host *C.struct_sim_host) {
	for g := range gpus(host) {
		processes := gpus(host)[g].processes[:]
		for i := range processes {
			byte := C.SIM_PROCESS_LOCKS + int64(g*len(processes)+i)
			if processes[i].by_driver != 0 && !h.byteLocked(byte) {
				processes[i] = C.struct_sim_process{}
			}
		}
	}
}

func (h *Host) byteLocked(byte int64) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: byte, Len: 1}
	err := unix.FcntlFlock(h.file.Fd(), unix.F_OFD_GETLK, &lock)
	return err != nil || lock.Type != unix.F_UNLCK
}

func (h *Host) onGPU(index int, f func(*C.struct_sim_gpu) error) error {
	return h.locked(func(host *C.struct_sim_host) error {
		if index < 0 || index >= int(host.gpu_count) {
			return fmt.Errorf("there is no GPU %d; the host has %d, counted from 0", index, int(host.gpu_count))
		}
		return f(&gpus(host)[index])
	})
}

func text(array []C.char) string {
	end := slices.Index(array, 0)
	if end < 0 {
		end = len(array)
	}
	return C.GoStringN(&array[0], C.int(end))
}

// put writes a text into an array, zeros after it. The error names the text.
func put(array []C.char, s string) error {
	if len(s) >= len(array) {
		return fmt.Errorf("%q is too long: at most %d bytes", s, len(array)-1)
	}
	clear(array)
	for i := range len(s) {
		array[i] = C.char(s[i])
	}
	return nil
}

func flag(on bool) C.uint32_t {
	if on {
		return 1
	}
	return 0
}

// Resize adds GPUs to the host, or removes the last ones, until it has one for each model; the others stay as they are.
// It fails, and changes nothing, if a GPU would become another model, or if a GPU to remove is not as it was created
// or inUse reports that it is used. The seed must be that of Create.
func (h *Host) Resize(models []resource.Model, opts Options, inUse func(uuid string) bool) error {
	data, err := newState(models, opts)
	if err != nil {
		return err
	}
	want := view(data)
	return h.locked(func(host *C.struct_sim_host) error {
		for i, gpu := range gpus(host) {
			switch {
			case i >= len(models):
				if !unused(&gpu) || inUse(text(gpu.uuid[:])) {
					return fmt.Errorf("GPU %d is in use", i)
				}
			case gpu.name != gpus(want)[i].name:
				return fmt.Errorf("GPU %d would become another model: it is simulated as %s", i, text(gpu.name[:]))
			}
		}
		if want.size > host.size {
			if err := h.file.Truncate(int64(want.size)); err != nil {
				return fmt.Errorf("cannot enlarge %s: %w", h.file.Name(), err)
			}
		}
		had := host.gpu_count
		host.gpu_count, host.size, host.simulates = want.gpu_count, want.size, want.simulates
		for i := had; i < want.gpu_count; i++ {
			gpus(host)[i] = gpus(want)[i]
		}
		return h.file.Truncate(int64(want.size))
	})
}

func unused(gpu *C.struct_sim_gpu) bool {
	return !anyInstance(gpu) && !anyProcess(gpu) && gpu.mig == 0 && gpu.mig_pending == 0 && gpu.persistence == 0 &&
		gpu.lock_max_mhz == 0 && gpu.power_limit_mw == gpu.power_default_mw && gpu.compute_mode == 0
}
