package enginetest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
)

func tiny(command ...string) container.Config {
	return container.Config{Image: "tiny", Cmd: command}
}

func gpu(ids ...string) container.HostConfig {
	request := container.DeviceRequest{Driver: "nvidia", DeviceIDs: ids, Capabilities: [][]string{{"gpu"}}}
	return container.HostConfig{Resources: container.Resources{DeviceRequests: []container.DeviceRequest{request}}}
}

// TestNothingIsLeft runs an engine with a running container and checks, after its end, that nothing with the engine's
// name remains.
func TestNothingIsLeft(t *testing.T) {
	var e *Engine
	hook := RecordingHook(t)
	ran := t.Run("engine", func(t *testing.T) {
		e = Start(t, Options{Path: []string{hook.Dir}, Env: []string{"SEEN=yes"}})
		e.Load(t, "tiny")
		for _, ids := range [][]string{{"MIG-a"}, {"MIG-b", "MIG-c"}} {
			if out, err := e.Run(t, tiny("env"), gpu(ids...)); err != nil || !strings.Contains(out, "NVIDIA_VISIBLE_DEVICES="+strings.Join(ids, ",")) {
				t.Errorf("%v: %v\n%s", ids, err, out)
			}
		}
		if got := hook.Requests(t); !slices.Equal(got, []string{"MIG-a", "MIG-b,MIG-c"}) {
			t.Errorf("the hook was asked for %q", got)
		}
		ctx := context.Background()
		created, err := e.Client.ContainerCreate(ctx, &container.Config{Image: "tiny", Cmd: []string{"sleep", "1000"}}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
		check(t, err)
		check(t, e.Client.ContainerStart(ctx, created.ID, container.StartOptions{}))
		if groups := named(t, "/sys/fs/cgroup/*", e.name); len(groups) == 0 {
			t.Error("no control group bears the engine's name, so looking for one afterwards would prove nothing")
		}
	})
	if e == nil {
		t.Skip("no engine")
	}
	if !ran {
		t.FailNow()
	}
	for _, place := range []string{os.TempDir(), "/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		if left := named(t, place, e.name); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	check(t, err)
	if strings.Contains(string(mounts), e.name) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(t, err)
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), e.name) {
			t.Errorf("a process is left: %q", line)
		}
	}
}

func named(t *testing.T, folder, name string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, name))
	check(t, err)
	return found
}

func TestFailingHook(t *testing.T) {
	e := Start(t, Options{Path: []string{FailingHook(t, "MIG-x").Dir}})
	e.Load(t, "tiny")
	_, err := e.Run(t, tiny("true"), gpu("MIG-x"))
	if err == nil || !strings.Contains(err.Error(), "nvidia-container-cli: device error: MIG-x: unknown device") {
		t.Errorf("got %v", err)
	}
	if out, err := e.Run(t, tiny("true"), container.HostConfig{}); err != nil {
		t.Errorf("without a GPU: %v %s", err, out)
	}
}
