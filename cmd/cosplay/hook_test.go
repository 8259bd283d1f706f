package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"cosplay/internal/enginetest"
)

// gpuProject is a project on a host that looks like hardware: a simulated NVML
// library that the configuration names as the host's. Its sessions get their
// slices by NVIDIA's hook, in an engine of the test.
func gpuProject(t *testing.T, hook enginetest.Hook) (project, *enginetest.Engine) {
	t.Helper()
	engine := enginetest.Start(t, enginetest.Options{Path: []string{hook.Dir}})
	engine.Load(t, "tiny")
	t.Setenv("DOCKER_HOST", engine.Host)
	t.Setenv("PATH", hook.Dir+":"+os.Getenv("PATH"))
	p := newProject(t, `host "lab" { simulate = "1 x h200" }`)
	p.run("plan")
	library := filepath.Join(p.dir, ".cosplay/sim/lab/libnvidia-ml.so.1")
	text := fmt.Sprintf(`
host "lab" {
  nvml    = %q
  runtime = "docker"
}
session "hooked" {
  count  = 2
  target = "2060"
  image  = "tiny"
  ssh {
    enabled = false
  }
}
`, library)
	if err := os.WriteFile(filepath.Join(p.dir, "fleet.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p, engine
}

func names(t *testing.T, e *enginetest.Engine) []string {
	t.Helper()
	all, err := e.Client.ContainerList(context.Background(), container.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Names[0])
	}
	slices.Sort(names)
	return names
}

// oneLine undoes the wrapping of words.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestHookGetsTheSlice: without CDI, cosplay passes the slice of a session to
// NVIDIA's hook.
func TestHookGetsTheSlice(t *testing.T) {
	hook := enginetest.RecordingHook(t)
	p, engine := gpuProject(t, hook)
	if plan := p.run("plan"); !strings.Contains(oneLine(plan), "slices through --gpus (NVIDIA's hook)") {
		t.Errorf("the plan does not tell how slices come into containers:\n%s", plan)
	}
	p.run("apply", "--auto-approve")
	folder := filepath.Base(p.dir)
	if got := names(t, engine); !slices.Equal(got, []string{"/cosplay-hooked-0-" + folder, "/cosplay-hooked-1-" + folder}) {
		t.Errorf("there are %v", got)
	}
	asked := hook.Requests(t)
	slices.Sort(asked)
	shown := p.run("show")
	if len(asked) != 2 || asked[0] == asked[1] {
		t.Fatalf("the hook was asked for %v", asked)
	}
	for _, uuid := range asked {
		if !strings.HasPrefix(uuid, "MIG-") || !strings.Contains(shown, uuid) {
			t.Errorf("the hook was asked for %s, which is no slice of the state:\n%s", uuid, shown)
		}
	}
	p.run("plan", "--detailed-exitcode")
	p.run("destroy", "--auto-approve")
	if got := names(t, engine); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// TestHookThatFails: the failure is reported in words with exit code 1, no container
// is left, and the host is as it was.
func TestHookThatFails(t *testing.T) {
	p, engine := gpuProject(t, enginetest.FailingHook(t, "MIG-x"))
	before := p.hardware()
	c := p.command("apply", "--auto-approve")
	out, _ := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(oneLine(string(out)), "NVIDIA's hook refuses the slice (device error: MIG-x: unknown device") {
		t.Errorf("it says\n%s", out)
	}
	if got := names(t, engine); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	p.run("destroy", "--auto-approve")
	if !bytes.Equal(p.hardware(), before) {
		t.Error("the host is not as it was")
	}
}
