package sim_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// clientArgument turns the test binary into a client of a host: a separate process that can be killed, or run as
// another user.
const clientArgument = "simulated-host-client"

func runClient(dir string, actions []string) int {
	l := nvml.New(nvml.WithLibraryPath(sim.LibraryPath(dir)))
	if ret := l.Init(); ret != nvml.SUCCESS {
		fmt.Println("init:", int(ret))
		return 0
	}
	for _, action := range actions {
		if action == "wait" {
			fmt.Println("waiting")
			time.Sleep(time.Minute)
		}
		fmt.Printf("%s: %s\n", action, act(l, action))
	}
	l.Shutdown()
	return 0
}

func act(l nvml.Interface, action string) string {
	d, ret := l.DeviceGetHandleByIndex(0)
	switch action {
	case "name":
		name, _ := d.GetName()
		return name
	case "lock":
		ret = d.SetGpuLockedClocks(1200, 1200)
	case "hammer":
		return hammer(d)
	}
	return strconv.Itoa(int(ret))
}

// hammer creates and removes slices while other processes do the same.
func hammer(d nvml.Device) string {
	made := 0
	for range 300 {
		gi, ret := d.CreateGpuInstance(&nvml.GpuInstanceProfileInfo{Id: 19})
		if ret == nvml.ERROR_INSUFFICIENT_RESOURCES {
			continue
		}
		if ret != nvml.SUCCESS {
			return "create: " + nvml.ErrorString(ret)
		}
		ci, ret := gi.CreateComputeInstance(&nvml.ComputeInstanceProfileInfo{Id: 0})
		if ret != nvml.SUCCESS {
			return "compute: " + nvml.ErrorString(ret)
		}
		if ci.Destroy() != nvml.SUCCESS || gi.Destroy() != nvml.SUCCESS {
			return "destroy failed"
		}
		made++
	}
	if made == 0 {
		return "made nothing"
	}
	return "ok"
}

func client(dir string, actions ...string) *exec.Cmd {
	return exec.Command(os.Args[0], append([]string{clientArgument, dir}, actions...)...)
}

// The next client removes a killed client and everything that the driver kept for it.
func TestKilledClient(t *testing.T) {
	create(t, h200)
	before := state(t)
	c := client(dir, "lock", "wait")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	for buffer := make([]byte, 256); !strings.Contains(said, "waiting"); {
		n, err := out.Read(buffer)
		if err != nil {
			t.Fatalf("the client said %q, then %v", said, err)
		}
		said += string(buffer[:n])
	}
	shown, err := open(t).Show()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "lock of the client", shown.GPUs[0].ClockLockMHz, 1200)
	c.Process.Kill()
	c.Wait()
	must(t, library.Init())
	must(t, library.Shutdown())
	sameState(t, before)
}

func TestManyClientsAtOnce(t *testing.T) {
	create(t, h200)
	if err := open(t).Set(0, "mig", "on"); err != nil {
		t.Fatal(err)
	}
	before := state(t)
	done := make(chan string)
	for range 4 {
		go func() {
			out, err := client(dir, "hammer").CombinedOutput()
			done <- fmt.Sprint(strings.TrimSpace(string(out)), err)
		}()
	}
	for range 4 {
		equal(t, "client", <-done, "hammer: ok<nil>")
	}
	sameState(t, before)
}

// If the state is read-only, getters work and setters are refused.
func TestReadOnly(t *testing.T) {
	folder, err := os.MkdirTemp("", "read-only-host")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := sim.Create(folder, []resource.Model{h200}, sim.Options{}); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{folder: 0o755, filepath.Join(folder, "host"): 0o444} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(folder, "client") // where every user can reach it
	if err := os.WriteFile(other, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(other, clientArgument, folder, "name", "lock")
	if os.Getuid() == 0 { // file modes do not restrict root
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	equal(t, "client", string(out), "name: NVIDIA H200\nlock: 4\n")
}

// The library and this package refuse a file that is not a host.
func TestForeignState(t *testing.T) {
	create(t, h200)
	good := state(t)
	path := filepath.Join(dir, "host")
	older := append([]byte(nil), good...)
	older[8] = 99
	cases := map[string]struct {
		data []byte
		says string
	}{
		"empty":     {nil, "is not a simulated host"},
		"text":      {[]byte(strings.Repeat("hello ", 20_000)), "is not a simulated host"},
		"truncated": {good[:len(good)-1], "is damaged"},
		"too long":  {append(append([]byte(nil), good...), 0), "is damaged"},
		"version":   {older, "another version of cosplay"},
	}
	for name, c := range cases {
		if err := os.WriteFile(path, c.data, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := sim.Open(dir)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, want one that says %q", name, err, c.says)
		}
		equal(t, name, library.Init(), nvml.ERROR_LIB_RM_VERSION_MISMATCH)
	}
	os.Remove(path)
	equal(t, "no file", library.Init(), nvml.ERROR_DRIVER_NOT_LOADED)
	if _, err := sim.Open(dir); err == nil || !strings.Contains(err.Error(), "no simulated host") {
		t.Errorf("without a file the error is %v", err)
	}
}
