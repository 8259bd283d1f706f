package sim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

func TestParseSpec(t *testing.T) {
	good := map[string][]sim.Part{
		"8 x h200":           {{Count: 8, Key: "h200"}},
		"8xh200":             {{Count: 8, Key: "h200"}},
		"2 X A100-80GB":      {{Count: 2, Key: "a100-80gb"}},
		"1 x h200, 2 x l40s": {{Count: 1, Key: "h200"}, {Count: 2, Key: "l40s"}},
		"h200":               {{Count: 1, Key: "h200"}},
		" h200 ,l40s":        {{Count: 1, Key: "h200"}, {Count: 1, Key: "l40s"}},
		"4 l40s":             {{Count: 4, Key: "l40s"}},
		"2 x 4090":           {{Count: 2, Key: "4090"}},
		"4090":               {{Count: 1, Key: "4090"}},
		"1 x NVIDIA H200":    {{Count: 1, Key: "nvidia h200"}},
	}
	for spec, expected := range good {
		parts, err := sim.ParseSpec(spec)
		if err != nil || !slices.Equal(parts, expected) {
			t.Errorf("%q is %v, %v; want %v", spec, parts, err, expected)
		}
	}
	for spec, names := range map[string]string{
		"": `""`, "8 x": `"8 x"`, "0 x h200": `"0 x h200"`, "h200,": `""`, "9999 x h200": "9999",
		"1 x h200, x l40s": `"x l40s"`, "-1 x h200": `"-1 x h200"`, "99999999999999999999 h200": "99999999999999999999",
	} {
		if parts, err := sim.ParseSpec(spec); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%q is %v with the error %v, want one that names %s", spec, parts, err, names)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	broken := func(change func(*resource.Model)) []resource.Model {
		m := h200
		m.Profiles = slices.Clone(m.Profiles)
		change(&m)
		return []resource.Model{m}
	}
	cases := map[string]struct {
		models []resource.Model
		says   string
	}{
		"none":       {nil, "not 0"},
		"clocks":     {broken(func(m *resource.Model) { m.ClocksMHz = nil }), "0 SM clocks"},
		"capability": {broken(func(m *resource.Model) { m.ComputeCapability = "nine" }), `"nine"`},
		"name":       {broken(func(m *resource.Model) { m.Name = strings.Repeat("H", 200) }), "too long"},
		"profile":    {broken(func(m *resource.Model) { m.Profiles[0].ComputeSlices = 5 }), "5 compute slices"},
	}
	for name, c := range cases {
		folder := t.TempDir()
		err := sim.Create(folder, c.models, sim.Options{})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, want one that says %q", name, err, c.says)
		}
		if left, _ := os.ReadDir(folder); len(left) != 0 {
			t.Errorf("%s: it left %v", name, left)
		}
	}
}

func TestCreateIsTheSameEachTime(t *testing.T) {
	create(t, h200, a30)
	before := state(t)
	create(t, h200, a30)
	sameState(t, before)
	info, err := os.Stat(filepath.Join(dir, "libnvidia-ml.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "mode", info.Mode().Perm(), 0o755)
}

// TestRelocate: the libraries of a host are restored whatever they contain, and left alone otherwise.
func TestRelocate(t *testing.T) {
	create(t, h200)
	path := filepath.Join(dir, "libnvidia-ml.so.1")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := slices.Clone(whole)
	other[len(other)-1] ^= 1
	for what, content := range map[string][]byte{"shorter": whole[:len(whole)-1], "longer": append(slices.Clone(whole), 0), "other": other, "empty": nil} {
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := sim.Relocate(dir); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(path); err != nil || !slices.Equal(now, whole) {
			t.Errorf("%s: %d bytes, %v", what, len(now), err)
		}
	}
	before, _ := os.Stat(path)
	if err := sim.Relocate(dir); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("a library that was right was replaced")
	}
}

func TestSet(t *testing.T) {
	create(t, h200)
	h := open(t)
	for _, s := range [][2]string{
		{"mig", "on"}, {"persistence", "on"}, {"power-limit", "450"}, {"clock-lock", "1200"}, {"temperature", "71"}, {"lost", "on"}, {"mig-pending", "off"},
	} {
		set(t, h, 0, s[0], s[1])
	}
	shown, err := h.Show()
	if err != nil {
		t.Fatal(err)
	}
	g := shown.GPUs[0]
	expected := public.SimulatedGPU{UUID: g.UUID, Name: "NVIDIA H200", MIG: true, Persistence: true, PowerMW: 450_000, ClockLockMHz: 1200, ComputeMode: "default", TemperatureC: 71, Lost: true}
	if !reflect.DeepEqual(g, expected) {
		t.Errorf("it is %+v, want %+v", g, expected)
	}
	set(t, h, 0, "clock-lock", "none")
	if shown, _ = h.Show(); shown.GPUs[0].ClockLockMHz != 0 {
		t.Errorf("the lock is still %d MHz", shown.GPUs[0].ClockLockMHz)
	}
}

func TestSetRefuses(t *testing.T) {
	create(t, h200, l40s)
	h := open(t)
	set(t, h, 0, "mig", "on")
	if _, err := h.CreateSlice(0, "1g.18gb", 0); err != nil {
		t.Fatal(err)
	}
	before := state(t)
	for _, c := range []struct {
		gpu              int
		key, value, says string
	}{
		{0, "colour", "red", "there are mig (on or off), mig-pending"},
		{2, "mig", "on", "the host has 2, counted from 0"},
		{-1, "mig", "on", "no GPU -1"},
		{0, "mig", "maybe", "on or off"},
		{0, "mig", "off", "slices"},
		{1, "mig", "on", "has no MIG"},
		{0, "power-limit", "100", "between 200 and 700 W"},
		{0, "power-limit", "NaN", "between 200 and 700 W"},
		{0, "clock-lock", "1201", "345 to 1980 MHz in steps of 15"},
		{0, "temperature", "hot", "between 0 and 150 C"},
		{0, "process", "1", "PID:MiB"},
		{0, "process", "1:x", `"x"`},
		{0, "process", "1:10", "say in which GPU instance"},
		{0, "process", "1:10:3", "no GPU instance 3"},
		{1, "process", "1:10:0", "no GPU instance 0"},
	} {
		if err := h.Set(c.gpu, c.key, c.value); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s = %s: the error is %v, want one that says %q", c.key, c.value, err, c.says)
		}
	}
	sameState(t, before)
}

func TestForeignSlices(t *testing.T) {
	create(t, h200, l40s)
	h := open(t)
	if _, err := h.CreateSlice(0, "3g.71gb", 4); err == nil || !strings.Contains(err.Error(), "Not Supported") {
		t.Errorf("without MIG the error is %v", err)
	}
	set(t, h, 0, "mig", "on")
	before := state(t)
	id, err := h.CreateSlice(0, "3g.71gb", 4)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "id", id, 1)
	shown, err := h.Show()
	if err != nil {
		t.Fatal(err)
	}
	s := shown.GPUs[0].Slices[0]
	equal(t, "slice", s.Profile, "3g.71gb")
	equal(t, "placement", [2]int{s.Start, s.Size}, [2]int{4, 4})
	equal(t, "compute slices", s.Compute[0].Size, 3)

	for says, try := range map[string]func() error{
		"Insufficient Resources":         func() error { _, err := h.CreateSlice(0, "2g.35gb", 4); return err },
		"it can at [0 4]":                func() error { _, err := h.CreateSlice(0, "3g.71gb", 1); return err },
		"it has [1g.18gb":                func() error { _, err := h.CreateSlice(0, "3g.40gb", 0); return err },
		"has no MIG":                     func() error { _, err := h.CreateSlice(1, "3g.40gb", 0); return err },
		"has no GPU instance 2":          func() error { return h.DestroySlice(0, 2) },
		"has no GPU instance 99":         func() error { return h.DestroySlice(0, 99) },
		"the host has 2, counted from 0": func() error { return h.DestroySlice(7, 2) },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want one that says %q", err, says)
		}
	}
	set(t, h, 0, "process", "4711:100:1")
	if err := h.DestroySlice(0, 1); err == nil || !strings.Contains(err.Error(), "In use") {
		t.Errorf("with a program in it the error is %v", err)
	}
	set(t, h, 0, "process", "none")
	if err := h.DestroySlice(0, 1); err != nil {
		t.Fatal(err)
	}
	sameState(t, before)
}

func TestReboot(t *testing.T) {
	h := start(t, h200, a100)
	first, err := sim.BootID(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		migOn(t, gpu(t, i))
		must(t, gpu(t, i).SetPersistenceMode(nvml.FEATURE_ENABLED))
		must(t, gpu(t, i).SetPowerManagementLimit(350_000))
		must(t, gpu(t, i).SetGpuLockedClocks(1200, 1200))
	}
	slice(t, gpu(t, 0), h200, "1g.18gb", 0)
	slice(t, gpu(t, 1), a100, "1g.10gb", 0)
	set(t, h, 0, "lost", "on")
	if err := h.Reboot(); err != nil {
		t.Fatal(err)
	}
	second, err := sim.BootID(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first == second || len(second) != 36 {
		t.Errorf("the boot id was %s and is %s", first, second)
	}
	shown, err := h.Show()
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range []resource.Model{h200, a100} {
		g := shown.GPUs[i]
		keeps := m.ComputeCapability == "8.0"
		expected := public.SimulatedGPU{Index: i, UUID: g.UUID, Name: m.Name, MIG: keeps, MIGPending: keeps, PowerMW: m.PowerDefaultMW, ComputeMode: "default", TemperatureC: g.TemperatureC}
		if !reflect.DeepEqual(g, expected) {
			t.Errorf("GPU %d is %+v, want %+v", i, g, expected)
		}
	}
}

// A mode change that waits for a restart takes effect with it, on GPUs that keep the mode.
func TestRebootResolvesPendingMode(t *testing.T) {
	h := start(t, a100)
	set(t, h, 0, "process", "4711:1")
	activation, ret := gpu(t, 0).SetMigMode(1)
	must(t, ret)
	want(t, activation, nvml.ERROR_IN_USE)
	if err := h.Reboot(); err != nil {
		t.Fatal(err)
	}
	equal(t, "mode", mode(t, gpu(t, 0)), [2]int{1, 1})
}

func TestShownIsJSON(t *testing.T) {
	create(t, h200)
	h := open(t)
	set(t, h, 0, "mig", "on")
	if _, err := h.CreateSlice(0, "1g.18gb", 6); err != nil {
		t.Fatal(err)
	}
	set(t, h, 0, "process", "4711:100:13")
	setFault(t, h, "nvmlInit:5=TIMEOUT")
	shown, err := h.Show()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	var back public.Simulated
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(shown, back) {
		t.Errorf("%+v came back as %+v", shown, back)
	}
	if *back.GPUs[0].Processes[0].GPUInstance != 13 || back.Faults[0] != (public.Fault{Function: "nvmlInit", Nth: 5, Action: "answer", Code: 10}) || back.Simulates != "test" {
		t.Errorf("something is missing in %s", data)
	}
}
