package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/sim"
)

func parse(t *testing.T, s string) sim.Fault {
	t.Helper()
	f, err := sim.ParseFault(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func setFault(t *testing.T, h *sim.Host, s string) {
	t.Helper()
	if err := h.SetFault(parse(t, s)); err != nil {
		t.Fatal(err)
	}
}

func TestFaultStrikesTheNthCallOnce(t *testing.T) {
	h := start(t, h200)
	d := gpu(t, 0)
	before := state(t)
	setFault(t, h, "nvmlDeviceSetPowerManagementLimit:3=NO_PERMISSION")
	for i, expected := range []nvml.Return{nvml.SUCCESS, nvml.SUCCESS, nvml.ERROR_NO_PERMISSION, nvml.SUCCESS} {
		if got := d.SetPowerManagementLimit(700_000); got != expected {
			t.Errorf("call %d: NVML answered %v, want %v", i+1, got, expected)
		}
	}
	sameState(t, before)
}

func TestFaultAtEveryCall(t *testing.T) {
	h := start(t, h200)
	d := gpu(t, 0)
	setFault(t, h, "nvmlDeviceGetMemoryInfo:0=999")
	for range 3 {
		_, ret := d.GetMemoryInfo() // answered through _v2
		want(t, ret, nvml.ERROR_UNKNOWN)
	}
	if err := h.ClearFaults(); err != nil {
		t.Fatal(err)
	}
	_, ret := d.GetMemoryInfo()
	must(t, ret)
}

func TestIgnoringFault(t *testing.T) {
	h := start(t, h200)
	d := gpu(t, 0)
	setFault(t, h, "nvmlDeviceSetPowerManagementLimit=ignore")
	must(t, d.SetPowerManagementLimit(300_000))
	limit, ret := d.GetPowerManagementLimit()
	must(t, ret)
	equal(t, "limit", limit, 700_000)
}

// A call that hangs blocks its own process and no other process.
func TestHangingFault(t *testing.T) {
	create(t, h200)
	h := open(t)
	setFault(t, h, "nvmlDeviceGetName=hang")
	c := client(dir, "name")
	done := make(chan error, 1)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { done <- c.Wait() }()
	for deadline := time.Now().Add(10 * time.Second); ; {
		shown, err := h.Show()
		if err != nil {
			t.Fatal(err)
		}
		if len(shown.Faults) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the fault never struck")
		}
		time.Sleep(time.Millisecond)
	}
	must(t, library.Init())
	_, ret := gpu(t, 0).GetName()
	must(t, ret)
	must(t, library.Shutdown())
	select {
	case err := <-done:
		t.Errorf("the call came back: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	c.Process.Kill()
	if err := <-done; err == nil {
		t.Error("the client ended well")
	}
}

func TestParseFault(t *testing.T) {
	good := map[string]sim.Fault{
		"nvmlDeviceSetMigMode=IN_USE":             {Function: "nvmlDeviceSetMigMode", Nth: 1, Action: sim.Answer, Code: 19},
		"nvmlDeviceSetMigMode:0=ERROR_IN_USE":     {Function: "nvmlDeviceSetMigMode", Nth: 0, Action: sim.Answer, Code: 19},
		"nvmlInit:2=NVML_ERROR_GPU_IS_LOST":       {Function: "nvmlInit", Nth: 2, Action: sim.Answer, Code: 15},
		"nvmlGpuInstanceDestroy:4=hang":           {Function: "nvmlGpuInstanceDestroy", Nth: 4, Action: sim.Hang},
		"nvmlDeviceCreateGpuInstance:1=999":       {Function: "nvmlDeviceCreateGpuInstance", Nth: 1, Action: sim.Answer, Code: 999},
		"nvmlDeviceCreateGpuInstance:1=UNKNOWN":   {Function: "nvmlDeviceCreateGpuInstance", Nth: 1, Action: sim.Answer, Code: 999},
		"nvmlDeviceResetGpuLockedClocks:1=ignore": {Function: "nvmlDeviceResetGpuLockedClocks", Nth: 1, Action: sim.Ignore},
	}
	for s, expected := range good {
		f := parse(t, s)
		equal(t, s, f, expected)
		equal(t, s+" again", parse(t, f.String()), expected)
	}
	bad := map[string]string{
		"nvmlDeviceSetMigMode":          "FUNCTION=WHAT",
		"nvmlDeviceSetMigMod=IN_USE":    `no function "nvmlDeviceSetMigMod"`,
		"nvmlDeviceSetMigMode:x=IN_USE": `"x" is not the number`,
		"nvmlDeviceSetMigMode:-1=hang":  "call -1",
		"nvmlDeviceSetMigMode=BROKEN":   `"BROKEN" is neither`,
		"nvmlDeviceSetMigMode=77":       "no code 77",
		"=hang":                         `no function ""`,
	}
	for s, says := range bad {
		if _, err := sim.ParseFault(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: the error is %v, want one that says %q", s, err, says)
		}
	}
}

func TestOnlySoManyFaults(t *testing.T) {
	create(t, h200)
	h := open(t)
	for range 16 {
		setFault(t, h, "nvmlInit=TIMEOUT")
	}
	if err := h.SetFault(parse(t, "nvmlInit=TIMEOUT")); err == nil {
		t.Error("a 17th fault was taken")
	}
	if err := h.ClearFaults(); err != nil {
		t.Fatal(err)
	}
	setFault(t, h, "nvmlInit=TIMEOUT")
	want(t, library.Init(), nvml.ERROR_TIMEOUT)
}
