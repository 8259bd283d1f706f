package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cosplay/catalog"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// TestMain lets the test binary be the child that it tests.
func TestMain(m *testing.M) {
	if len(os.Args) >= 4 && os.Args[1] == "agent" {
		ledger := ""
		if len(os.Args) == 6 {
			ledger = os.Args[5]
		}
		InUseWait = time.Second
		if err := Serve(os.Stdin, os.Stdout, Service{Library: os.Args[3], Ledger: ledger}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// newHost simulates a host and opens an agent on it.
func newHost(t *testing.T, o Options, keys ...string) (*sim.Host, *Client) {
	t.Helper()
	dir := t.TempDir()
	var models []resource.Model
	for _, key := range keys {
		m, err := catalog.HostModel(key)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	if err := sim.Create(dir, models, sim.Options{Seed: t.Name()}); err != nil {
		t.Fatal(err)
	}
	host, err := sim.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	o.Library = sim.LibraryPath(dir)
	client := New(o)
	t.Cleanup(func() { client.Close(); host.Close() })
	return host, client
}

func read(t *testing.T, c *Client) resource.Host {
	t.Helper()
	host, err := c.Read(context.Background(), resource.MPSSearch{})
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// TestReadMatchesTheCatalog: what NVML reports of every kind of host is what the
// catalog states, except for what NVML does not report.
func TestReadMatchesTheCatalog(t *testing.T) {
	var keys []string
	for _, h := range catalog.Hosts() {
		keys = append(keys, h.Key)
	}
	_, client := newHost(t, Options{}, keys...)
	for _, g := range read(t, client).GPUs {
		// The driver hides the placements of profiles until MIG mode is on.
		if g.MIGCapable {
			if err := change(client, g.UUID, resource.MIGMode, resource.On); err != nil {
				t.Fatal(err)
			}
		}
	}
	live := read(t, client)
	if len(live.GPUs) != len(keys) {
		t.Fatalf("%d GPUs, want %d", len(live.GPUs), len(keys))
	}
	for i, g := range live.GPUs {
		want, _ := catalog.HostModel(keys[i])
		got, known := catalog.Complete(g.Model)
		if !known {
			t.Errorf("%s: unknown product %q", keys[i], g.Model.Name)
		}
		if got.SMs != want.SMs || got.MemoryMiB != want.MemoryMiB || got.ComputeCapability != want.ComputeCapability {
			t.Errorf("%s: %d SMs, %d MiB, %s; want %d, %d, %s", keys[i], got.SMs, got.MemoryMiB, got.ComputeCapability, want.SMs, want.MemoryMiB, want.ComputeCapability)
		}
		if fmt.Sprint(got.ClocksMHz) != fmt.Sprint(want.ClocksMHz) {
			t.Errorf("%s: clocks %v, want %v", keys[i], got.ClocksMHz, want.ClocksMHz)
		}
		if got.PowerMinMW != want.PowerMinMW || got.PowerDefaultMW != want.PowerDefaultMW || got.PowerMaxMW != want.PowerMaxMW || g.PowerMW != want.PowerDefaultMW {
			t.Errorf("%s: power %d/%d/%d mW, want %d/%d/%d", keys[i], got.PowerMinMW, got.PowerDefaultMW, got.PowerMaxMW, want.PowerMinMW, want.PowerDefaultMW, want.PowerMaxMW)
		}
		if got.MemorySlices != want.MemorySlices || got.ComputeSlices != want.ComputeSlices || len(got.Profiles) != len(want.Profiles) {
			t.Errorf("%s: %d/%d slices, %d profiles, want %d/%d and %d", keys[i], got.MemorySlices, got.ComputeSlices, len(got.Profiles), want.MemorySlices, want.ComputeSlices, len(want.Profiles))
			continue
		}
		for _, p := range want.Profiles {
			if has, _ := got.Profile(p.Name); fmt.Sprint(has) != fmt.Sprint(p) {
				t.Errorf("%s: profile %v, want %v", keys[i], has, p)
			}
		}
		if g.MIGCapable != want.MIG() || g.MIG != want.MIG() {
			t.Errorf("%s: MIG capable %v, on %v", keys[i], g.MIGCapable, g.MIG)
		}
	}
}

func TestSliceComesAndGoes(t *testing.T) {
	_, client := newHost(t, Options{}, "h200")
	ctx := context.Background()
	gpu := read(t, client).GPUs[0].UUID
	if err := change(client, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	want := resource.Slice{Host: "lab", GPU: gpu, Profile: "2g.35gb", Start: 2, Size: 2}
	made, err := client.CreateSlice(ctx, want, resource.Need{SMs: 32, MemoryMiB: 33024})
	if err != nil {
		t.Fatal(err)
	}
	if made.Slice != want || !strings.HasPrefix(made.UUID, "MIG-") {
		t.Errorf("made %+v, want %+v with a UUID", made, want)
	}
	if seen := read(t, client).GPUs[0].Slices; len(seen) != 1 || seen[0].UUID != made.UUID {
		t.Errorf("the GPU shows %+v", seen)
	}
	// Taken: the hardware's own code comes through.
	_, err = client.CreateSlice(ctx, want, resource.Need{SMs: 32, MemoryMiB: 33024})
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != 23 || !strings.Contains(err.Error(), "GPU 0") {
		t.Errorf("a second slice in the same place: %v", err)
	}
	// A profile that is not what the plan counted on.
	_, err = client.CreateSlice(ctx, resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 0, Size: 1}, resource.Need{SMs: 18})
	if err == nil || !strings.Contains(err.Error(), "has 16 SMs") {
		t.Errorf("a slice with other SMs than planned: %v", err)
	}
	// Another UUID in the record: not the slice that is meant.
	other := made
	other.UUID = "MIG-00000000-0000-0000-0000-000000000000"
	if err := client.DestroySlice(ctx, other); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("destroyed by a wrong UUID: %v", err)
	}
	for range 2 { // twice is once
		if err := client.DestroySlice(ctx, made); err != nil {
			t.Fatal(err)
		}
	}
	if seen := read(t, client).GPUs[0].Slices; len(seen) != 0 {
		t.Errorf("left: %+v", seen)
	}
}

func TestComputeInstanceFailsAndNothingIsLeft(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	ctx := context.Background()
	gpu := read(t, client).GPUs[0].UUID
	if err := change(client, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	if err := host.SetFault(sim.Fault{Function: "nvmlGpuInstanceCreateComputeInstance", Nth: 1, Action: sim.Answer, Code: 23}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateSlice(ctx, resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 0, Size: 1}, resource.Need{SMs: 16}); err == nil {
		t.Error("no error")
	}
	if seen := read(t, client).GPUs[0].Slices; len(seen) != 0 {
		t.Errorf("left: %+v", seen)
	}
}

// TestSliceInUse: a slice that a process uses stays, and the error names the
// process; one that a process used a moment ago is destroyed.
func TestSliceInUse(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	ctx := context.Background()
	gpu := read(t, client).GPUs[0].UUID
	if err := change(client, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	slice, err := client.CreateSlice(ctx, resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 0, Size: 1}, resource.Need{SMs: 16})
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command("sleep", "600")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	if err := host.Set(0, "process", fmt.Sprintf("%d:100:%d", holder.Process.Pid, slice.GPUInstance)); err != nil {
		t.Fatal(err)
	}
	named := fmt.Sprintf("sleep (pid %d, 100 MiB) uses GPU instance %d. Fix: stop", holder.Process.Pid, slice.GPUInstance)
	if err := client.DestroySlice(ctx, slice); err == nil || !strings.Contains(err.Error(), named) {
		t.Errorf("got %v, want %q", err, named)
	}
	if seen := read(t, client).GPUs[0].Slices; len(seen) != 1 || seen[0].UUID != slice.UUID {
		t.Errorf("there are %+v", seen)
	}
	if err := host.Set(0, "process", "none"); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy"} {
		if err := host.SetFault(sim.Fault{Function: call, Nth: 1, Action: sim.Answer, Code: 19}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.DestroySlice(ctx, slice); err != nil {
		t.Errorf("a slice that was in use for a moment: %v", err)
	}
	if shown, err := host.Show(); err != nil || len(shown.Faults) != 0 || len(shown.GPUs[0].Slices) != 0 {
		t.Errorf("left: %+v, %v", shown, err)
	}
}

// TestDestroyOnlyTheRecordedSlice: under the name that another driver gives it as
// well; a slice of another boot is another one, whatever it is called.
func TestDestroyOnlyTheRecordedSlice(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	ctx := context.Background()
	gpu := read(t, client).GPUs[0].UUID
	if err := change(client, gpu, resource.MIGMode, resource.On); err != nil {
		t.Fatal(err)
	}
	made, err := client.CreateSlice(ctx, resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 0, Size: 1}, resource.Need{SMs: 16})
	if err != nil || made.Boot == "" {
		t.Fatal(made, err)
	}
	if err := host.Set(0, "uuid-format", "ids"); err != nil {
		t.Fatal(err)
	}
	if live := read(t, client).GPUs[0].Slices[0]; live.UUID == made.UUID || live.UUID != resource.IDName(gpu, made.GPUInstance, made.ComputeInstance) {
		t.Fatalf("the driver calls it %q", live.UUID)
	}
	for what, meddle := range map[string]func(*resource.LiveSlice){
		"of another boot": func(s *resource.LiveSlice) { s.Boot = "before" },
		"of other ids":    func(s *resource.LiveSlice) { s.GPUInstance++ },
	} {
		other := made
		meddle(&other)
		if err := client.DestroySlice(ctx, other); err == nil || !strings.Contains(err.Error(), "is another one now") {
			t.Errorf("a slice %s: %v", what, err)
		}
	}
	if err := client.DestroySlice(ctx, made); err != nil {
		t.Error(err)
	}
	if left := read(t, client).GPUs[0].Slices; len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestPendingMIGIsTakenBack(t *testing.T) {
	host, client := newHost(t, Options{}, "h200")
	gpu := read(t, client).GPUs[0].UUID
	if err := host.Set(0, "process", "4711:100"); err != nil {
		t.Fatal(err)
	}
	err := change(client, gpu, resource.MIGMode, resource.On)
	if err == nil || !strings.Contains(err.Error(), "does not switch") {
		t.Errorf("got %v", err)
	}
	if g := read(t, client).GPUs[0]; g.MIG || g.MIGPending {
		t.Errorf("MIG %v, pending %v", g.MIG, g.MIGPending)
	}
}

func change(c *Client, gpu string, s resource.Setting, value int) error {
	_, err := c.Set(context.Background(), gpu, s, value)
	return err
}

// TestDriverSaysYesAndDoesNothing: every change with a getter is read back.
func TestDriverSaysYesAndDoesNothing(t *testing.T) {
	for function, to := range map[string]struct {
		setting resource.Setting
		value   int
	}{
		"nvmlDeviceSetMigMode":              {resource.MIGMode, resource.On},
		"nvmlDeviceSetPersistenceMode":      {resource.PersistenceMode, resource.On},
		"nvmlDeviceSetPowerManagementLimit": {resource.PowerLimit, 300_000},
	} {
		t.Run(function, func(t *testing.T) {
			host, client := newHost(t, Options{}, "h200")
			gpu := read(t, client).GPUs[0].UUID
			if err := host.SetFault(sim.Fault{Function: function, Nth: 0, Action: sim.Ignore}); err != nil {
				t.Fatal(err)
			}
			if err := change(client, gpu, to.setting, to.value); err == nil {
				t.Error("the change passed for done")
			}
			if err := host.ClearFaults(); err != nil {
				t.Fatal(err)
			}
			if err := change(client, gpu, to.setting, to.value); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHungCall ends within its deadline, and names the call and the GPU; the
// next request gets a fresh child.
func TestHungCall(t *testing.T) {
	host, client := newHost(t, Options{Deadline: 300 * time.Millisecond}, "h200", "h200")
	read(t, client)
	if err := host.SetFault(sim.Fault{Function: "nvmlDeviceGetMigMode", Nth: 2, Action: sim.Hang}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err := client.Read(context.Background(), resource.MPSSearch{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"nvmlDeviceGetMigMode", "GPU 1", "300ms"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	read(t, client)
}

// TestLibraryWithoutASymbol is an error that names it, not a crash.
func TestLibraryWithoutASymbol(t *testing.T) {
	for _, test := range []struct{ name, code, want string }{
		{"empty", "", "nvmlInit_v2"},
		{"init only", `
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "some error"; }`, "nvmlDeviceGetCount_v2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			source, library := filepath.Join(dir, "tiny.c"), filepath.Join(dir, "libnvidia-ml.so.1")
			if err := os.WriteFile(source, []byte(test.code), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			client := New(Options{Library: library})
			defer client.Close()
			_, err := client.Read(context.Background(), resource.MPSSearch{})
			if err == nil || !strings.Contains(err.Error(), "no such function") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSilentChild: a child that does not answer is ended, and the error says after how long.
func TestSilentChild(t *testing.T) {
	client := New(Options{Deadline: time.Millisecond})
	in, out := io.Pipe()
	client.reads.line = &line{Writer: io.Discard, answers: bufio.NewReader(in), kill: func() { _ = out.Close() }, errors: func() string { return "" }}
	if _, err := client.Read(context.Background(), resource.MPSSearch{}); err == nil || !strings.Contains(err.Error(), "does not answer within 2.001s and was ended") || !strings.Contains(err.Error(), "dmesg") {
		t.Errorf("got %v", err)
	}
}

func TestNoLibrary(t *testing.T) {
	client := New(Options{Library: "/nowhere/libnvidia-ml.so.1"})
	defer client.Close()
	_, err := client.Read(context.Background(), resource.MPSSearch{})
	if err == nil || !strings.Contains(err.Error(), "/nowhere") || !strings.Contains(err.Error(), "simulate") {
		t.Errorf("got %v", err)
	}
}

// TestChildDies: a child that ends in the middle is an error, and the next
// request starts another.
func TestChildDies(t *testing.T) {
	_, client := newHost(t, Options{}, "h200")
	read(t, client)
	client.reads.line.kill()
	if _, err := client.Read(context.Background(), resource.MPSSearch{}); err == nil || !strings.Contains(err.Error(), "agent process has ended") {
		t.Errorf("got %v", err)
	}
	read(t, client)
}
