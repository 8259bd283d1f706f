package resolve_test

import (
	"strings"
	"testing"

	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

const (
	plain = `host "lab" {}
session "w" { target = "2060" }`
	patient = `host "lab" { slow_neighbours = true }
session "w" { target = "2060" }`
)

// foreign puts a foreign slice on a GPU.
func foreign(w *worldtest.World) {
	g := w.GPU("GPU-0")
	g.MIG, g.MIGPending = true, true
	g.Slices = []resource.LiveSlice{{
		Slice:  resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 0, Size: 1},
		Handle: resource.Handle{GPUInstance: 7, UUID: "MIG-theirs"},
	}}
}

// TestNeighbours: cosplay changes nothing on a GPU that foreign programs use, unless the host's block permits it.
func TestNeighbours(t *testing.T) {
	seven := 7
	for _, test := range []struct {
		name, text string
		before     func(*worldtest.World)
		clock      int  // of the fit
		changes    bool // clock and power are set
		gpu        string
	}{
		{"alone", plain, func(*worldtest.World) {}, 1575, true, "GPU-0"},
		{"a foreign slice", plain, foreign, 1980, false, "GPU-0"},
		{"a foreign slice, and they may be slowed", patient, foreign, 1575, true, "GPU-0"},
		{"a foreign slice on a GPU with a foreign clock lock", plain, func(w *worldtest.World) {
			foreign(w)
			w.GPU("GPU-0").SMClockMHz, w.GPU("GPU-0").LowClockReason = 1200, false
		}, 1200, false, "GPU-0"},
		{"a foreign process in a slice", plain, func(w *worldtest.World) {
			foreign(w)
			w.GPU("GPU-0").Processes = []resource.Process{{PID: 1, GPUInstance: &seven}}
		}, 1980, false, "GPU-0"},
		{"nothing managed but slices", `host "lab" { manage = ["slices", "mig-mode"] }
session "w" { target = "2060" }`, func(*worldtest.World) {}, 1980, false, "GPU-0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := worldtest.New(t, "h200")
			test.before(w)
			p, diags := w.Plan(t, test.text, resource.Prior{})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			s := p.Desired.Sessions[0]
			if s.Fit.ClockMHz != test.clock || s.Slice.GPU != test.gpu {
				t.Errorf("clock of the fit %d on %s, want %d on %s", s.Fit.ClockMHz, s.Slice.GPU, test.clock, test.gpu)
			}
			set := p.Diff.GPUs[0].Settings
			if got := set.Has(resource.SMClock) || set.Has(resource.PowerLimit); got != test.changes {
				t.Errorf("%v are set; want clock or power: %v", set, test.changes)
			}
		})
	}
}

// TestOtherGPUsAreOnlyRead: cosplay places no session on a GPU that gpus excludes.
func TestOtherGPUsAreOnlyRead(t *testing.T) {
	w := worldtest.New(t, "h200", "h200")
	p, diags := w.Plan(t, `host "lab" { gpus = [1] }
session "w" {
  count  = 7
  target = "2060"
}`, resource.Prior{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, s := range p.Desired.Sessions {
		if s.Slice.GPU != "GPU-1" {
			t.Errorf("%s is on %s", s.Address, s.Slice.GPU)
		}
	}
	if len(p.Diff.GPUs) != 1 || p.Diff.GPUs[0].UUID != "GPU-1" {
		t.Errorf("GPUs: %+v", p.Diff.GPUs)
	}
}

// TestDiagnostics: if the host lacks something, the diagnostic is at the value that asks for it.
func TestDiagnostics(t *testing.T) {
	for _, test := range []struct{ name, text, want, at string }{
		{"gpu of a session", "host \"lab\" {}\nsession \"w\" {\n  target = \"2060\"\n  gpu = 3\n}", `host "lab" has no GPU 3`, "fleet.hcl:4,9-10"},
		{"gpu of a host", "host \"lab\" {\n  gpus = [0, \"GPU-ffffffff\"]\n}\nsession \"w\" { target = \"2060\" }", `has no GPU GPU-ffffffff`, "fleet.hcl:2,14-28"},
		{"no room", "host \"lab\" {}\nsession \"w\" {\n  count = 8\n  target = \"2060\"\n}", "session.w[7] does not fit", "fleet.hcl:4,12-18"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := worldtest.New(t, "h200")
			_, diags := w.Plan(t, test.text, resource.Prior{})
			if !diags.HasErrors() {
				t.Fatal("no error")
			}
			d := diags[0]
			if !strings.Contains(d.Summary, test.want) || d.Detail == "" || d.Subject == nil || d.Subject.String() != test.at {
				t.Errorf("%s\n%s\nat %v, want %s at %s", d.Summary, d.Detail, d.Subject, test.want, test.at)
			}
		})
	}
}

// TestLockBeforeUs: NVML cannot read a lock from before cosplay. If the SM clock
// indicates one, the plan warns, unless the host's block states it.
func TestLockBeforeUs(t *testing.T) {
	for _, test := range []struct {
		name, text string
		clock      int
		held, warn bool
	}{
		{"idle", plain, 345, true, false},
		{"busy at full clock", plain, 1980, false, false},
		{"busy below it", plain, 1200, false, true},
		{"idle above the lowest", plain, 1200, true, true},
		{"in the configuration", `host "lab" { baseline_clock = 1200 }
session "w" { target = "2060" }`, 1200, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := worldtest.New(t, "h200")
			w.GPU("GPU-0").SMClockMHz, w.GPU("GPU-0").LowClockReason = test.clock, test.held
			_, diags := w.Plan(t, test.text, resource.Prior{})
			warned := len(diags) == 1 && strings.Contains(diags[0].Detail, "baseline_clock = 1200")
			if warned != test.warn || diags.HasErrors() {
				t.Errorf("warned: %v, %v", warned, diags)
			}
		})
	}
}

// TestWarnsOfUsedGPUs warns of what cosplay gives up on the GPUs that sessions get, and not on others.
func TestWarnsOfUsedGPUs(t *testing.T) {
	w := worldtest.New(t, "h200", "h200", "h200")
	for i := range w.Host().GPUs {
		w.Host().GPUs[i].Degraded = []resource.Degradation{{Feature: resource.FeaturePower, Call: "nvmlDeviceSetPowerManagementLimit", Code: 3, Message: "Not Supported"}}
	}
	_, diags := w.Plan(t, "host \"lab\" {}\nsession \"w\" {\n  target = \"2060\"\n  gpu    = 1\n}\nsession \"v\" {\n  target = \"2060\"\n  gpu    = 2\n}\n", resource.Prior{})
	if len(diags) != 1 || diags[0].Summary != `GPUs 1, 2 of host "lab": the driver does not offer every call` {
		t.Error(diags)
	}
}
