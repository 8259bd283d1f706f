package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// TestErrorsNameTheirCause: each code has its own cause and fix, and only a code
// that says so blames another process.
func TestErrorsNameTheirCause(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	gpu := read(t, client).GPUs[0].UUID
	if err := change(client, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	const create = "nvmlDeviceCreateGpuInstanceWithPlacement"
	for code, words := range map[nvml.Return]string{
		nvml.ERROR_NOT_SUPPORTED:          "does not support this call. Fix: leave the setting out of manage",
		nvml.ERROR_NO_PERMISSION:          "refuses this call to the user of the agent. Fix: run cosplay doctor",
		nvml.ERROR_GPU_IS_LOST:            "The GPU is lost: it fell off the bus, or the driver has given it up. Fix: read the Xid errors in dmesg, then reboot",
		nvml.ERROR_RESET_REQUIRED:         "requires a reset before it accepts this call. Fix: stop the processes on the GPU, then run nvidia-smi --gpu-reset",
		nvml.ERROR_IN_USE:                 "A process uses what this call changes. Fix: stop the process",
		nvml.ERROR_INSUFFICIENT_RESOURCES: "Possible cause: another process has taken the slot since the plan. Fix: run cosplay plan",
		nvml.ERROR_UNKNOWN:                "does not name its cause. Fix: read the Xid errors in dmesg",
	} {
		if err := host.SetFault(sim.Fault{Function: create, Action: sim.Answer, Code: int(code)}); err != nil {
			t.Fatal(err)
		}
		_, err := client.CreateSlice(t.Context(), resource.Slice{GPU: gpu, Profile: "1g.18gb", Size: 1}, resource.Need{SMs: 16})
		if err := host.ClearFaults(); err != nil {
			t.Fatal(err)
		}
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("code %d says %v, want %q", code, err, words)
			continue
		}
		if got := strings.Contains(err.Error(), "another process"); got != (code == nvml.ERROR_INSUFFICIENT_RESOURCES) {
			t.Errorf("code %d blames another process: %v", code, err)
		}
	}
	if text := adviceOn("nvmlDeviceSetPowerManagementLimit", nvml.ERROR_INSUFFICIENT_RESOURCES).Error(); strings.Contains(text, "slot") {
		t.Errorf("a call that makes no slice blames a slot: %q", text)
	}
}

// TestOpeners: processes that NVML does not list are found by the device files
// that they have open; the names of processes are safe for a terminal.
func TestOpeners(t *testing.T) {
	root := t.TempDir()
	file := func(path, content string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open := func(pid, name, target string) {
		t.Helper()
		file(pid+"/comm", name+"\n")
		fd := filepath.Join(root, pid, "fd")
		if err := os.MkdirAll(fd, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(fd, "3")); err != nil {
			t.Fatal(err)
		}
	}
	open("11", "trainer", "/dev/nvidia-caps/nvidia-cap30")
	open("12", "shell", "/dev/pts/0")
	open("13", "\x1b[31mred", "/dev/nvidia-caps/nvidia-cap31")
	file("driver/nvidia/capabilities/gpu0/mig/gi7/access", "DeviceFileMinor: 30\nDeviceFileMode: 256\n")
	file("driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access", "DeviceFileMinor: 31\n")

	files := deviceFiles(root, 0, &instanceIDs{gpu: 7})
	if want := []string{"/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31"}; !slices.Equal(files, want) {
		t.Errorf("device files %v, want %v", files, want)
	}
	got, unreadable := openers(root, files)
	slices.SortFunc(got, func(a, b resource.Process) int { return a.PID - b.PID })
	want := []resource.Process{{PID: 11, Name: "trainer"}, {PID: 13, Name: `\x1b[31mred`}}
	if !slices.EqualFunc(got, want, func(a, b resource.Process) bool { return a.PID == b.PID && a.Name == b.Name }) || unreadable != 0 {
		t.Errorf("got %+v and %d unreadable, want %+v", got, unreadable, want)
	}
	if names := resource.ProcessNames(got); names != `trainer (pid 11) and \x1b[31mred (pid 13)` {
		t.Errorf("named %q", names)
	}
	if whole := deviceFiles(root, 2, nil); !slices.Equal(whole, []string{"/dev/nvidia2"}) {
		t.Errorf("of the whole GPU: %v", whole)
	}
}

// TestOpenersReadLittle: a process with more open files than any program needs does not
// hold up a change.
func TestOpenersReadLittle(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "11", "fd")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for fd := range 3 * readOfProcess {
		if err := os.Symlink("/dev/null", filepath.Join(folder, strconv.Itoa(fd))); err != nil {
			t.Fatal(err)
		}
	}
	if open, err := firstIn(folder, readOfProcess); err != nil || len(open) != readOfProcess {
		t.Errorf("%d descriptors, %v", len(open), err)
	}
	if got, unreadable := openers(root, []string{"/dev/nvidia0"}); len(got) != 0 || unreadable != 0 {
		t.Errorf("got %+v and %d unreadable", got, unreadable)
	}
}
