//go:build cgo && linux

package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

const inUseNap = 200 * time.Millisecond

const procRoot = "/proc"

// instanceID names a MIG slice by its instances; nil is the whole GPU.
type instanceID = *instanceIDs

// unused repeats a try that fails with IN_USE for up to InUseWait. After that, inUseBy names the processes that use
// the slice, which the try stores in held, or the GPU. Each try reads the GPU again.
func (d device) unused(held *instanceID, try func() error) error {
	// Half of the deadline is left for the calls after it, and for the report.
	until := time.Now().Add(min(InUseWait, d.lib.deadline/2))
	for {
		err := try()
		if !isCode(err, nvml.ERROR_IN_USE) {
			return err
		}
		if time.Now().Add(inUseNap).After(until) {
			d.lib.users = func() prose.Advice { return d.heldBy(*held) }
			return err
		}
		if ended := d.lib.nap(d.uuid, inUseNap); ended != nil {
			return ended
		}
	}
}

// inUseBy adds to the error of a change the processes that use the GPU or the slice. It
// is for after the turn: it changes nothing, and a user can make it slow.
func (l *nvmlLibrary) inUseBy(err error) error {
	if at, is := errors.AsType[*Error](err); is && l.users != nil {
		at.Advice = l.users()
	}
	return err
}

// heldBy names the processes that hold a slice or a GPU: NVML's list first, then
// those that have its device files open.
func (d device) heldBy(held instanceID) prose.Advice {
	what := "the GPU"
	if held != nil {
		what = held.String()
	}
	holders := d.listed(held)
	var files []string
	if minor, err := get(d, "nvmlDeviceGetMinorNumber", d.GetMinorNumber); err == nil {
		files = deviceFiles(procRoot, minor, held)
	}
	found, unreadable := openers(procRoot, files)
	for _, p := range found {
		if !slices.ContainsFunc(holders, func(h resource.Process) bool { return h.PID == p.PID }) {
			holders = append(holders, p)
		}
	}
	const again = ", then run the same command again"
	if len(holders) > 0 {
		n := len(holders)
		return prose.Advice{What: fmt.Sprintf("%s %s %s.", resource.ProcessNames(holders), prose.Choose(n, "uses", "use"), what), Fix: "stop " + prose.Choose(n, "the process", "the processes") + again}
	}
	text := fmt.Sprintf("A process uses %s, but NVML lists none and cosplay finds none in /proc.", what)
	if unreadable > 0 {
		text = fmt.Sprintf("A process uses %s, but NVML lists none. cosplay could not read the open files of %d processes.", what, unreadable)
	}
	return prose.Advice{What: text, Fix: "find the process with sudo fuser -v /dev/nvidia*, stop it" + again}
}

func (d device) listed(held instanceID) []resource.Process {
	var gpu resource.GPU
	if d.readProcesses(&gpu) != nil { // the error of the change is more important
		return nil
	}
	if held != nil {
		gpu.Processes = slices.DeleteFunc(gpu.Processes, func(p resource.Process) bool {
			return !p.In(resource.Handle{GPUInstance: held.gpu, ComputeInstance: held.compute})
		})
	}
	return gpu.Processes
}

// deviceFiles are the files that a process opens to use a slice or a GPU: the capabilities of the instances, or the
// GPU's own file.
func deviceFiles(root string, minor int, held instanceID) []string {
	if held == nil {
		return []string{fmt.Sprintf("/dev/nvidia%d", minor)}
	}
	instance := filepath.Join(root, "driver/nvidia/capabilities", fmt.Sprintf("gpu%d/mig/gi%d", minor, held.gpu))
	capabilities := []string{filepath.Join(instance, fmt.Sprintf("ci%d", held.compute), "access")}
	if !held.part { // else processes in other compute instances have it open as well
		capabilities = append([]string{filepath.Join(instance, "access")}, capabilities...)
	}
	var files []string
	for _, access := range capabilities {
		text, _ := os.ReadFile(access) // without the file the driver has no such capability
		for line := range strings.Lines(string(text)) {
			if number, ok := strings.CutPrefix(line, "DeviceFileMinor:"); ok {
				files = append(files, "/dev/nvidia-caps/nvidia-cap"+strings.TrimSpace(number))
			}
		}
	}
	return files
}

// Bounds of the search in /proc, since a user can have any number of processes and descriptors: descriptors of one
// process, and the time for all processes. Programs open a GPU early, so the lowest descriptors are read.
const (
	readOfProcess = 1 << 10
	readForAll    = 2 * time.Second
)

// openers are the processes that have one of the files open, and the number of those whose files could not be read.
func openers(root string, files []string) (all []resource.Process, unreadable int) {
	entries, err := os.ReadDir(root)
	if err != nil || len(files) == 0 {
		return nil, 0
	}
	until := time.Now().Add(readForAll)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		folder := filepath.Join(root, e.Name(), "fd")
		if time.Now().After(until) {
			unreadable++
			continue
		}
		open, err := firstIn(folder, readOfProcess)
		if errors.Is(err, os.ErrPermission) {
			unreadable++
			continue
		}
		if slices.ContainsFunc(open, func(fd os.DirEntry) bool {
			target, err := os.Readlink(filepath.Join(folder, fd.Name()))
			return err == nil && slices.Contains(files, target)
		}) {
			all = append(all, resource.Process{PID: pid, Name: processName(root, pid)})
		}
	}
	return all, unreadable
}

func firstIn(folder string, most int) ([]os.DirEntry, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(most)
}
