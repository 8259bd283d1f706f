package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestFaults: each NVML call fails, or says yes and does nothing, at each of its
// occurrences during apply and destroy. The command says so and exits with 1;
// the next apply converges, and the next destroy leaves the host as it was.
func TestFaults(t *testing.T) {
	const text = `
host "lab" { simulate = "1 x h200" }
session "worker" {
  count  = 3
  target = "2060"
}
`
	calls := map[string]int{ // how often in apply and destroy, at most
		"nvmlDeviceSetMigMode":                       1,
		"nvmlDeviceSetPersistenceMode":               1,
		"nvmlDeviceSetPowerManagementLimit":          1,
		"nvmlDeviceSetGpuLockedClocks":               1,
		"nvmlDeviceResetGpuLockedClocks":             1,
		"nvmlDeviceCreateGpuInstanceWithPlacement":   3,
		"nvmlGpuInstanceCreateComputeInstance":       3,
		"nvmlComputeInstanceDestroy":                 3,
		"nvmlGpuInstanceDestroy":                     3,
		"nvmlDeviceGetGpuInstances":                  12,
		"nvmlDeviceGetMigMode":                       4,
		"nvmlDeviceGetPowerManagementLimit":          4,
		"nvmlGpuInstanceGetInfo":                     4,
		"nvmlDeviceGetMigDeviceHandleByIndex":        4,
		"nvmlDeviceGetGpuInstancePossiblePlacements": 4,
	}
	cases, struck := 0, 0
	for function, occurrences := range calls {
		for n := 1; n <= occurrences; n++ {
			kinds := []string{"999", "ignore"}
			if strings.Contains(function, "Get") {
				kinds = kinds[:1] // a getter that lies cannot be found out
			}
			for _, what := range kinds {
				for _, phase := range []string{"apply", "destroy"} {
					cases++
					if faultCase(t, text, fmt.Sprintf("%s:%d=%s", function, n, what), phase) {
						struck++
					}
				}
			}
		}
	}
	t.Logf("%d cases, in %d of them the fault struck", cases, struck)
	if struck < cases/3 {
		t.Error("too few faults struck: the test proves too little")
	}
}

// faultCase reports whether the fault made the command fail.
func faultCase(t *testing.T, text, fault, phase string) (struck bool) {
	t.Helper()
	p := newProject(t, text)
	p.run("plan")
	p.run("sim", "set", "0", "persistence", "on")
	p.run("sim", "set", "0", "power-limit", "500")
	before := p.hardware()
	if phase == "destroy" {
		p.run("apply", "--auto-approve")
	}
	p.run("sim", "fault", fault)
	out, err := p.command(phase, "--auto-approve").CombinedOutput()
	struck = err != nil
	if struck {
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s, %s: %v\n%s", phase, fault, err, out)
		}
		if text := strings.Join(strings.Fields(string(out)), " "); !strings.Contains(text, "GPU 0") || (strings.HasSuffix(fault, "999") && !strings.Contains(text, "999")) {
			t.Errorf("%s, %s: the message names no GPU or no code:\n%s", phase, fault, out)
		}
	}
	p.run("sim", "fault", "--clear")
	p.run("apply", "--auto-approve")
	if out, err := p.command("plan", "--detailed-exitcode").CombinedOutput(); err != nil {
		t.Errorf("%s, %s: apply does not converge: %v\n%s", phase, fault, err, out)
	}
	if shown := p.run("sim", "show"); strings.Count(shown, `"profile"`) != 3 {
		t.Errorf("%s, %s: not three slices:\n%s", phase, fault, shown)
	}
	p.run("destroy", "--auto-approve")
	if !bytes.Equal(p.hardware(), before) {
		t.Errorf("%s, %s: the host is not as it was:\n%s", phase, fault, p.run("sim", "show"))
	}
	return struck
}
