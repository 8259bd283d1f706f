package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"cosplay/internal/public"
)

// restart starts the driver again, which finds these GPUs.
func (w *world) restart(gpus []public.ExportedGPU) {
	w.driver = newDriver(w.projects, nodeName, w.client, w.recorder, gpus, time.Minute)
}

// found are the GPUs that the driver finds, numbered as after a reboot.
func (w *world) found(t *testing.T) []public.ExportedGPU {
	t.Helper()
	gpus, err := w.gpus(context.Background())
	check(t, err)
	for i := range gpus {
		gpus[i].Index = i
	}
	return gpus
}

// TestRenumbered: the GPUs that are left when one is lost have other numbers after a restart, and claims keep their devices.
func TestRenumbered(t *testing.T) {
	w := newWorld(t, "2 x h200")
	lost, kept := w.claim(t, "lost", "gpu-0-1g-18gb-0", target("2060")), w.claim(t, "kept", "gpu-1-1g-18gb-0", target("2060"))
	device := w.prepareAll(t, kept)[0]
	old := w.claim(t, "old", "gpu-0-1g-18gb-1", target("2060"))
	old.Status.Allocation.Devices.Results[0].Device = "gpu-0-1g-18gb-1" // by a driver that named devices by number
	before := w.hardware(t)
	w.sim(t, "set", "0", "lost", "on")
	w.restart(w.found(t))
	if again := w.prepareAll(t, kept)[0]; again != device {
		t.Errorf("the claim has %s, and had %s", again, device)
	}
	w.refusedBy(t, lost, "Fix: delete the pods of the claim")
	w.refusedBy(t, old, "Fix: delete the pods of the claim")
	w.sim(t, "set", "0", "lost", "off")
	if now := w.hardware(t); string(now) != string(before) {
		t.Errorf("the host is\n%s\nand was\n%s", now, before)
	}
	w.look(context.Background(), 0)
	w.prepareAll(t, lost) // its GPU is back
	w.unprepareAll(t, lost, kept, old)
	w.untouched(t)
}

// TestLostMeanwhile: pods leave a GPU that was lost while the driver was down, also if it starts again.
func TestLostMeanwhile(t *testing.T) {
	w := newWorld(t, "2 x h200")
	claim := w.claim(t, "one", "gpu-0-1g-18gb-0", target("2060"))
	w.prepareAll(t, claim)
	w.sim(t, "set", "0", "lost", "on")
	for range 2 {
		w.restart(w.found(t))
	}
	for range lostAfter {
		w.look(context.Background(), 1)
	}
	if health, why, taints := w.state(t, "gpu-0-1g-18gb-0"); health != kubeletplugin.HealthStatusUnhealthy || len(taints) != 1 || taints[0].Effect != resourceapi.DeviceTaintEffectNoExecute {
		t.Errorf("a device of the lost GPU: %s, %q, %v", health, why, taints)
	}
	w.sim(t, "set", "0", "lost", "off")
	w.unprepareAll(t, claim)
	w.sim(t, "set", "0", "lost", "on")
	w.restart(w.found(t))
	if all := gpusIn(w.driver); len(all) != 1 {
		t.Errorf("a GPU that is lost and that no claim has is published: %d GPUs", len(all))
	}
	w.sim(t, "set", "0", "lost", "off")
	w.untouched(t)
}

// TestOtherSharing: a driver that starts with another --sharing leaves the GPUs that claims share as they are, until the last of
// these claims is removed.
func TestOtherSharing(t *testing.T) {
	w := newWorld(t, "1 x l40s")
	w.sharing = "time-slice"
	first, second := share(w.claim(t, "first", "gpu-0-whole", target("2060")), 6144), share(w.claim(t, "second", "gpu-0-whole", target("2060")), 6144)
	device := w.prepareAll(t, first)[0]
	before := specification(t, device)
	shares := func() (by string) {
		for _, s := range w.published().Pools[nodeName].Slices {
			for _, d := range s.Devices {
				if a := d.Attributes["sharing"].StringValue; a != nil && *d.AllowMultipleAllocations {
					by = *a
				}
			}
		}
		return by
	}
	for _, sharing := range []string{"mps", ""} {
		w.sharing = sharing
		if by := shares(); by != "time-slice" {
			t.Errorf("with --sharing=%s the GPU is published with %q", sharing, by)
		}
		if again := w.prepareAll(t, first)[0]; again != device || specification(t, device) != before {
			t.Errorf("with --sharing=%s the first has %s, %s, and had %s, %s", sharing, again, specification(t, again), device, before)
		}
		w.prepareAll(t, second)
		w.unprepareAll(t, second)
	}
	w.sharing = "mps"
	w.unprepareAll(t, first)
	if by := shares(); by != "mps" {
		t.Errorf("when no claim shares the GPU, it is published with %q", by)
	}
	w.untouched(t)
}

// TestNeighbourUnfinished: a claim that a killed driver left half done, or that the node's boot took its slice from, keeps no other
// off its GPU, and is brought to its end only when all its GPUs have their turn.
func TestNeighbourUnfinished(t *testing.T) {
	w := newWorld(t, "1 x h200")
	first, second := w.claim(t, "first", "gpu-0-1g-18gb-0", target("2060")), w.claim(t, "second", "gpu-0-1g-18gb-1", target("2060"))
	w.prepareAll(t, first)
	w.sim(t, "reboot")
	check(t, os.WriteFile(project{w.projects, ofClaim + string(first.UID)}.file(".ended"), []byte("an earlier boot"), 0o600))
	w.prepareAll(t, second)
	if n := strings.Count(string(w.hardware(t)), `"profile": "1g.18gb"`); n != 2 {
		t.Errorf("there are %d slices", n)
	}
	w.unprepareAll(t, first, second)
}

// TestTurnsOfUnfinished: a claim on a GPU waits for all GPUs of a project that is to be finished first, also for those that
// only the state of that project has.
func TestTurnsOfUnfinished(t *testing.T) {
	w := newWorld(t, "3 x l40s")
	pair := w.claim(t, "pair", "gpu-0-whole", target("3090"))
	results := &pair.Status.Allocation.Devices.Results
	*results = append(*results, (*results)[0])
	(*results)[1].Device = w.device("gpu-1-whole")
	answer, err := w.PrepareResourceClaims(context.Background(), []*resourceapi.ResourceClaim{pair})
	check(t, errors.Join(err, answer[pair.UID].Err))
	p := project{w.projects, ofClaim + string(pair.UID)}
	check(t, p.write(p.host(), nil))
	if got := w.touches("other", []string{w.first[1].UUID}); slices.Contains(got, w.first[0].UUID) {
		t.Errorf("a project that has ended is waited for: %v", got)
	}
	check(t, os.Remove(p.file(".ended")))
	if got := w.touches("other", []string{w.first[1].UUID}); !slices.Contains(got, w.first[0].UUID) || slices.Contains(got, w.first[2].UUID) {
		t.Errorf("a claim of the second GPU waits for %v", got)
	}
	w.unprepareAll(t, pair)
	w.untouched(t)
}

// slow makes the changes of one claim's project wait until release.
func (w *world) slow(t *testing.T, c *resourceapi.ResourceClaim) (waits func() bool, release func()) {
	t.Helper()
	dir := t.TempDir()
	script, begun, open := filepath.Join(dir, "cosplay"), filepath.Join(dir, "begun"), filepath.Join(dir, "open")
	text := fmt.Sprintf(`#!/bin/sh
case "$*" in *%s*apply*) touch %s; until [ -e %s ]; do sleep 0.05; done;; esac
exec %s "$@"
`, c.UID, begun, open, w.cosplay)
	check(t, os.WriteFile(script, []byte(text), 0o755))
	w.cosplay = script
	return func() bool { _, err := os.Stat(begun); return err == nil }, func() { check(t, os.WriteFile(open, nil, 0o600)) }
}

// within fails unless something ends while another thing waits for ever.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan bool)
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s waits", what)
	}
}

// TestSlowRepair: a repair that takes long delays no claim of another GPU, nor its repair or the reading of the GPUs.
func TestSlowRepair(t *testing.T) {
	w := newWorld(t, "2 x h200")
	slow, other, third := w.claim(t, "slow", "gpu-0-1g-18gb-0", target("2060")), w.claim(t, "other", "gpu-1-1g-18gb-0", target("2060")), w.claim(t, "third", "gpu-1-1g-18gb-1", target("2060"))
	device := w.prepareAll(t, slow, other)[1]
	w.sim(t, "reboot")
	waits, release := w.slow(t, slow)
	ended := make(chan bool)
	go func() { defer close(ended); w.check(context.Background()) }()
	within(t, "the repair of the other", func() {
		for !waits() || !strings.Contains(string(w.hardware(t)), `"profile": "1g.18gb"`) {
			time.Sleep(20 * time.Millisecond)
		}
	})
	within(t, "a claim of another GPU", func() {
		w.prepareAll(t, third)
		w.unprepareAll(t, third)
	})
	vendor, name, _ := strings.Cut(device, "=")
	file := filepath.Join("/var/run/cdi", strings.ReplaceAll(vendor, "/", "-")+"_"+name+".json")
	check(t, os.Remove(file))
	within(t, "the next check", func() { w.check(context.Background()) })
	specification(t, device)
	release()
	<-ended
	w.unprepareAll(t, slow, other)
}

// status is what the status of a claim has of its device.
func (w *world) status(t *testing.T, c *resourceapi.ResourceClaim) string {
	t.Helper()
	now, err := w.client.ResourceV1().ResourceClaims("default").Get(context.Background(), c.Name, metav1.GetOptions{})
	check(t, err)
	if len(now.Status.Devices) != 1 || now.Status.Devices[0].Data == nil {
		return ""
	}
	return string(now.Status.Devices[0].Data.Raw)
}

// TestStatusAgain: after a repair the status of a claim is written again, also if the API server is away at first, and a driver that
// starts writes all.
func TestStatusAgain(t *testing.T) {
	w := newWorld(t, "1 x h200")
	ctx := context.Background()
	claim := w.claim(t, "one", "gpu-0-1g-18gb-0", target("2060"))
	claims := w.client.ResourceV1().ResourceClaims("default")
	stored, err := claims.Get(ctx, "one", metav1.GetOptions{})
	check(t, err)
	stored.Status.Allocation = claim.Status.Allocation
	_, err = claims.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
	check(t, err)
	w.prepareAll(t, claim)
	forget := func() {
		stored, err := claims.Get(ctx, "one", metav1.GetOptions{})
		check(t, err)
		stored.Status.Devices = nil
		_, err = claims.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
		check(t, err)
	}
	forget()
	w.sim(t, "reboot")
	w.repair(ctx)
	if now := w.status(t, claim); !strings.Contains(now, `"slice":"MIG-`) || !strings.Contains(now, `"clockMHz":1575`) {
		t.Errorf("after a repair the status has %q", now)
	}
	forget()
	w.sim(t, "reboot")
	away := true
	w.client.PrependReactor("update", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away, nil, errors.New("the API server is away")
	})
	w.check(ctx)
	away = false
	if now := w.status(t, claim); now != "" {
		t.Fatalf("the status has %q", now)
	}
	w.check(ctx)
	if now := w.status(t, claim); !strings.Contains(now, `"slice":"MIG-`) {
		t.Errorf("when the API server is back the status has %q", now)
	}
	w.unprepareAll(t, claim)
}

// TestElsewhere: what a claim has left is removed when it is allocated to another node.
func TestElsewhere(t *testing.T) {
	w := newWorld(t, "1 x h200")
	claim := w.claim(t, "one", "gpu-0-1g-18gb-0", target("2060"))
	w.prepareAll(t, claim)
	claims := w.client.ResourceV1().ResourceClaims("default")
	stored, err := claims.Get(context.Background(), "one", metav1.GetOptions{})
	check(t, err)
	stored.Status.Allocation.Devices.Results[0].Pool = "n2"
	_, err = claims.UpdateStatus(context.Background(), stored, metav1.UpdateOptions{})
	check(t, err)
	check(t, w.sweep(context.Background()))
	w.untouched(t)
}

// TestUnprepareLost: a pod can leave a GPU that is lost, what it had is removed when the GPU is back, and claims of other GPUs
// can be removed meanwhile.
func TestUnprepareLost(t *testing.T) {
	w := newWorld(t, "3 x l40s")
	w.sharing = "time-slice"
	ctx := context.Background()
	gone, part := w.claim(t, "gone", "gpu-0-whole", target("3090")), share(w.claim(t, "part", "gpu-1-whole", target("2060")), 6144)
	other := w.claim(t, "other", "gpu-2-whole", target("3090"))
	w.prepareAll(t, gone, part, other)
	w.sim(t, "set", "0", "lost", "on")
	w.sim(t, "set", "1", "lost", "on")
	w.unprepareAll(t, other)
	results, err := w.UnprepareResourceClaims(ctx, []kubeletplugin.NamespacedObject{{UID: gone.UID}})
	check(t, err)
	if err := results[gone.UID]; err == nil || !strings.Contains(err.Error(), "GPU is lost") {
		t.Errorf("a GPU that was not found once: %v", err)
	}
	for range lostAfter {
		w.look(ctx, 1)
	}
	w.unprepareAll(t, gone, part)
	for _, c := range []string{"gone", "part"} {
		check(t, w.client.ResourceV1().ResourceClaims("default").Delete(ctx, c, metav1.DeleteOptions{}))
	}
	w.check(ctx)
	w.sim(t, "set", "0", "lost", "off")
	w.sim(t, "set", "1", "lost", "off")
	w.check(ctx)
	w.untouched(t)
}

// TestUnchanged: what is as it was is not written again, so that a full disk keeps nothing from being read.
func TestUnchanged(t *testing.T) {
	w := newWorld(t, "1 x h200")
	node := project{w.projects, "node"}
	before, err := os.Stat(node.file(".json"))
	check(t, err)
	w.look(context.Background(), 1)
	if after, err := os.Stat(node.file(".json")); err != nil || !os.SameFile(before, after) {
		t.Errorf("it is written again, %v", err)
	}
}
