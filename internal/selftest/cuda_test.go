package selftest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/projecttest"
	"cosplay/internal/sim"
)

// TestNoCUDA: sessions on a host without a CUDA driver get only the disguise of NVML, and
// doctor and plan report it.
func TestNoCUDA(t *testing.T) {
	if path := disguise.CUDALibrary("/nowhere/libnvidia-ml.so.1"); path != "" {
		t.Skipf("this machine has one: %s", path)
	}
	models, err := machine.SimulatedModels("", "1 x h200")
	if err != nil {
		t.Fatal(err)
	}
	host := t.TempDir()
	if err := sim.Create(host, models, sim.Options{}); err != nil {
		t.Fatal(err)
	}
	dir := projecttest.New(t, fmt.Sprintf("host \"lab\" {\n  runtime = \"process\"\n  nvml    = %q\n}\nsession \"worker\" { target = \"2060\" }\n", sim.LibraryPath(host)))
	says := func() (doctor, plan string) {
		p := projecttest.Open(t, dir)
		defer p.Close()
		for _, f := range Checkup(context.Background(), p) {
			if f.Thing == "CUDA" {
				doctor = string(f.Grade) + ": " + f.Found
			}
		}
		_, diags, err := p.Plan(context.Background(), project.Aim{})
		if err != nil {
			t.Fatal(err)
		}
		return doctor, diags.Error()
	}
	if doctor, plan := says(); doctor != "good: "+filepath.Join(host, driver.CUDA) || strings.Contains(plan, "CUDA") {
		t.Errorf("with one doctor says %q, plan %q", doctor, plan)
	}
	if err := os.Remove(filepath.Join(host, driver.CUDA)); err != nil {
		t.Fatal(err)
	}
	doctor, plan := says()
	if !strings.HasPrefix(doctor, "notice: there is no libcuda.so.1: ") {
		t.Errorf("doctor says %q", doctor)
	}
	if !strings.Contains(plan, `cosplay.hcl:3`) || !strings.Contains(plan, `host "lab" has no CUDA driver; There is no libcuda.so.1`) {
		t.Errorf("plan says %q", plan)
	}
	if steps := projecttest.Apply(t, dir, project.AsConfigured); !strings.Contains(steps, "session.worker/prepare") {
		t.Errorf("apply did %s", steps)
	}
	if steps := projecttest.Apply(t, dir, project.AsConfigured); steps != "" {
		t.Errorf("apply did %s the second time", steps)
	}
}
