package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// sim changes the simulated host as an admin or a fault would.
func (w *world) sim(t *testing.T, args ...string) {
	t.Helper()
	_, err := (project{w.projects, "node"}).run(context.Background(), append([]string{"sim"}, args...)...)
	check(t, err)
}

// next is the next event; it fails if that is another.
func (w *world) next(t *testing.T, want string) {
	t.Helper()
	select {
	case event := <-w.events:
		if !strings.Contains(event, want) {
			t.Errorf("the event is %q, want %q", event, want)
		}
	default:
		t.Errorf("there is no event %q", want)
	}
}

// state is the health of a device, and its taints, as they are published.
func (w *world) state(t *testing.T, device string) (health kubeletplugin.HealthStatus, message string, taints []resourceapi.DeviceTaint) {
	t.Helper()
	device = w.device(device)
	for _, one := range w.healthReport().Devices {
		if one.DeviceName == device {
			health, message = one.Health, one.Message
		}
	}
	for _, s := range w.published().Pools[nodeName].Slices {
		for _, one := range s.Devices {
			if one.Name == device {
				taints = one.Taints
			}
		}
	}
	return health, message, taints
}

// TestRepair: a slice that was removed, a reboot, and a specification that is missing are found, repaired and reported; what cannot
// be repaired taints its device alone.
func TestRepair(t *testing.T) {
	w := newWorld(t, "1 x h200")
	ctx := context.Background()
	one, two := w.claim(t, "one", "gpu-0-1g-18gb-0", target("2060")), w.claim(t, "two", "gpu-0-1g-18gb-1", target("2060"))
	device := w.prepareAll(t, one, two)[0]
	w.repair(ctx)
	if len(w.events) > 0 {
		t.Errorf("an event without any drift: %s", <-w.events)
	}
	before, locked := w.hardware(t), lock(t, w)
	vendor, name, _ := strings.Cut(device, "=")
	file := filepath.Join("/var/run/cdi", strings.ReplaceAll(vendor, "/", "-")+"_"+name+".json")
	check(t, os.Remove(file))
	w.repair(ctx)
	w.next(t, "Repaired")
	specification(t, device)
	w.sim(t, "reboot")
	w.repair(ctx)
	for range 2 {
		w.next(t, "Repaired")
	}
	if a, b := strings.Count(string(before), `"profile": "1g.18gb"`), strings.Count(string(w.hardware(t)), `"profile": "1g.18gb"`); a != b || lock(t, w) != locked {
		t.Errorf("after the reboot there are %d slices, and were %d; the lock is %s, and was %s", b, a, lock(t, w), locked)
	}
	w.sim(t, "reboot")
	w.sim(t, "fault", "nvmlDeviceCreateGpuInstanceWithPlacement:0=INSUFFICIENT_RESOURCES")
	w.repair(ctx)
	if health, why, taints := w.state(t, "gpu-0-1g-18gb-1"); health != kubeletplugin.HealthStatusUnhealthy || !strings.Contains(why, "nvmlDeviceCreateGpuInstanceWithPlacement") || len(taints) != 1 || taints[0].Key != taintDrifted {
		t.Errorf("a slice that cannot be made: %s, %q, %v", health, why, taints)
	}
	if health, why, taints := w.state(t, "gpu-0-1g-18gb-5"); health != kubeletplugin.HealthStatusHealthy || why != "" || len(taints) != 0 {
		t.Errorf("its neighbour: %s, %q, %v", health, why, taints)
	}
	w.sim(t, "fault", "--clear")
	w.repair(ctx)
	if health, why, taints := w.state(t, "gpu-0-1g-18gb-1"); health != kubeletplugin.HealthStatusHealthy || len(taints) != 0 {
		t.Errorf("after it was repaired: %s, %q, %v", health, why, taints)
	}
	w.unprepareAll(t, one, two)
}

// TestLost: a GPU that the driver no longer reports taints its devices so that pods leave it, until it is back; the others stay.
func TestLost(t *testing.T) {
	w := newWorld(t, "2 x h200")
	w.sim(t, "set", "0", "lost", "on")
	w.look(context.Background(), 0)
	w.look(context.Background(), 1)
	if health, _, taints := w.state(t, "gpu-0-7g-141gb-0"); health != kubeletplugin.HealthStatusHealthy || len(taints) > 0 {
		t.Errorf("after one check: %s, %v", health, taints)
	}
	w.look(context.Background(), 1)
	if health, why, taints := w.state(t, "gpu-0-7g-141gb-0"); health != kubeletplugin.HealthStatusUnhealthy || len(taints) != 1 || taints[0].Effect != resourceapi.DeviceTaintEffectNoExecute {
		t.Errorf("a device of the lost GPU: %s, %q, %v", health, why, taints)
	}
	if health, _, taints := w.state(t, "gpu-1-7g-141gb-0"); health != kubeletplugin.HealthStatusHealthy || len(taints) > 0 {
		t.Errorf("a device of the other: %s, %v", health, taints)
	}
	w.sim(t, "set", "0", "lost", "off")
	w.look(context.Background(), 0)
	if health, _, taints := w.state(t, "gpu-0-7g-141gb-0"); health != kubeletplugin.HealthStatusHealthy || len(taints) > 0 {
		t.Errorf("after it is back: %s, %v", health, taints)
	}
	w.health.checked = w.health.checked.Add(-time.Hour)
	if health, why, _ := w.state(t, "gpu-1-whole"); health != kubeletplugin.HealthStatusUnknown || !strings.Contains(why, "could not be read for 1h") {
		t.Errorf("without a check for an hour: %s, %q", health, why)
	}
}

// TestHTTP: /metrics has what was counted, and /healthz fails with the reason.
func TestHTTP(t *testing.T) {
	w := newWorld(t, "1 x h200")
	claim := w.claim(t, "one", "gpu-0-1g-18gb-0", target("2060"))
	w.prepareAll(t, claim)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var fault error
	address := "127.0.0.1:" + strings.TrimPrefix(url(freePort(t)), "http://127.0.0.1:")
	check(t, w.serveHTTP(ctx, address, func() error { return fault }))
	get := func(path string) (int, string) {
		answer, err := http.Get("http://" + address + path)
		check(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		check(t, err)
		return answer.StatusCode, string(text)
	}
	_, metrics := get("/metrics")
	for _, want := range []string{"cosplay_node_claims 1\n", `cosplay_node_claim_duration_seconds_count{call="prepare",result="ok"}`, `cosplay_node_gpu_up{gpu="GPU-`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %q:\n%s", want, metrics)
		}
	}
	if code, text := get("/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("/healthz: %d %s", code, text)
	}
	fault = kubeletplugin.ErrHealthNotSupported
	if code, text := get("/healthz"); code != http.StatusServiceUnavailable || !strings.Contains(text, fault.Error()) {
		t.Errorf("/healthz with a fault: %d %s", code, text)
	}
	fault = nil
	w.health.checked = time.Now().Add(-time.Hour) // a slow repair keeps the driver from reading the GPUs
	if code, text := get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz while a repair is slow: %d %s", code, text)
	}
	lastRun.Store(time.Now().Add(-time.Hour).Unix())
	if code, text := get("/healthz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "no command of cosplay has ended for 1h") {
		t.Errorf("/healthz of a driver that hangs: %d %s", code, text)
	}
	w.unprepareAll(t, claim)
	if code, text := get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz after a command: %d %s", code, text)
	}
	w.untouched(t)
}
