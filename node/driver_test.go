package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

func (w *world) prepareAll(t *testing.T, claims ...*resourceapi.ResourceClaim) (devices []string) {
	t.Helper()
	results, err := w.PrepareResourceClaims(context.Background(), claims)
	check(t, err)
	for _, c := range claims {
		r := results[c.UID]
		if r.Err != nil || len(r.Devices) != 1 || len(r.Devices[0].CDIDeviceIDs) != 1 {
			t.Fatalf("%s: %+v", c.Name, r)
		}
		devices = append(devices, r.Devices[0].CDIDeviceIDs[0])
	}
	return devices
}

func (w *world) unprepareAll(t *testing.T, claims ...*resourceapi.ResourceClaim) {
	t.Helper()
	var all []kubeletplugin.NamespacedObject
	for _, c := range claims {
		all = append(all, kubeletplugin.NamespacedObject{UID: c.UID})
	}
	results, err := w.UnprepareResourceClaims(context.Background(), all)
	check(t, err)
	for _, c := range claims {
		if err, answered := results[c.UID]; err != nil || !answered {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// specification is that of a device.
func specification(t *testing.T, device string) string {
	t.Helper()
	vendor, name, _ := strings.Cut(device, "=")
	text, err := os.ReadFile(filepath.Join("/var/run/cdi", strings.ReplaceAll(vendor, "/", "-")+"_"+name+".json"))
	check(t, err)
	return string(text)
}

// TestSeven prepares seven claims at once, twice, and removes them, twice: as kubelet may.
func TestSeven(t *testing.T) {
	w := newWorld(t, "1 x h200")
	var claims []*resourceapi.ResourceClaim
	for slot := range 7 {
		claims = append(claims, w.claim(t, fmt.Sprint("one-", slot), fmt.Sprintf("gpu-0-1g-18gb-%d", slot), target("2060")))
	}
	devices := w.prepareAll(t, claims...)
	for i, again := range w.prepareAll(t, claims...) {
		if again != devices[i] || !strings.Contains(specification(t, again), "GPU_COSPLAY_PRETTY=NVIDIA GeForce RTX 2060") {
			t.Errorf("claim %d has %s, and had %s", i, again, devices[i])
		}
	}
	now, err := w.client.ResourceV1().ResourceClaims("default").Get(context.Background(), "one-3", metav1.GetOptions{})
	check(t, err)
	if s := now.Status.Devices; len(s) != 1 || s[0].Device != w.device("gpu-0-1g-18gb-3") || s[0].Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("the status of a claim: %+v", s)
	}
	if n := strings.Count(string(w.hardware(t)), `"profile": "1g.18gb"`); n != 7 {
		t.Errorf("there are %d slices", n)
	}
	w.unprepareAll(t, claims[3:]...)
	w.unprepareAll(t, claims...)
	w.untouched(t)
}

// TestSchedulersChoice: the placements that the scheduler has chosen are carried out, where placement alone would take others.
func TestSchedulersChoice(t *testing.T) {
	w := newWorld(t, "1 x h200")
	var claims []*resourceapi.ResourceClaim
	for slot := range 4 {
		claims = append(claims, w.claim(t, fmt.Sprint("one-", slot), fmt.Sprintf("gpu-0-1g-18gb-%d", slot), target("2060")))
	}
	claims = append(claims, w.claim(t, "three", "gpu-0-3g-71gb-4", target("3060")))
	for _, c := range claims { // one after the other, as pods come
		w.prepareAll(t, c)
	}
	host := string(w.hardware(t))
	if !regexp.MustCompile(`"profile": "3g.71gb",\s+"start": 4`).MatchString(host) {
		t.Errorf("the host is %s", host)
	}
	w.unprepareAll(t, claims...)
	w.untouched(t)
}

// TestNeighboursClock: a claim whose target would need another clock than the pods beside it is refused where it says how far
// off it may be, and never changes their clock.
func TestNeighboursClock(t *testing.T) {
	w := newWorld(t, "1 x h200")
	first := w.claim(t, "first", "gpu-0-1g-18gb-0", target("2060"))
	w.prepareAll(t, first)
	clock := regexp.MustCompile(`"clock_lock_mhz": \d+`)
	before := clock.FindAllString(string(w.hardware(t)), -1)
	strict := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"target":"1660","maxError":"5%%"}`, apiVersion, kind)
	second := w.claim(t, "second", "gpu-0-1g-18gb-1", strict)
	results, err := w.PrepareResourceClaims(context.Background(), []*resourceapi.ResourceClaim{second})
	check(t, err)
	failed := results[second.UID].Err
	if failed == nil || !strings.Contains(failed.Error(), "maxError is 5 %") {
		t.Errorf("beside another clock: %v", failed)
	}
	if event := <-w.events; !strings.Contains(event, "Refused") || !strings.Contains(event, "maxError is 5 %") {
		t.Errorf("the event is %q", event)
	}
	now, err := w.client.ResourceV1().ResourceClaims("default").Get(context.Background(), "second", metav1.GetOptions{})
	check(t, err)
	if c := now.Status.Devices[0].Conditions[0]; c.Status != metav1.ConditionFalse || c.Reason != refused {
		t.Errorf("the condition is %+v", c)
	}
	loose := w.claim(t, "third", "gpu-0-1g-18gb-2", target("1660"))
	w.prepareAll(t, loose)
	if after := clock.FindAllString(string(w.hardware(t)), -1); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the clocks were %v and are %v", before, after)
	}
	w.unprepareAll(t, second, first, loose)
	w.untouched(t)
}

// forged are claims that ask for more than their parameters may say.
func forged() map[string]struct{ device, class, claim, want string } {
	good := target("2060")
	body := func(rest string) string { return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s}`, apiVersion, kind, rest) }
	return map[string]struct{ device, class, claim, want string }{
		"expression":    {"gpu-0-1g-18gb-0", body(`"target":"${file(\"/etc/shadow\")}"`), "", "target cannot be"},
		"template":      {"gpu-0-1g-18gb-0", body(`"target":"%{ if true }2060%{ endif }"`), "", "target cannot be"},
		"newline":       {"gpu-0-1g-18gb-0", body(`"target":"2060\nsession"`), "", "target cannot be"},
		"error":         {"gpu-0-1g-18gb-0", body(`"target":"2060","maxError":"${1}"`), "", "maxError cannot be"},
		"unknown field": {"gpu-0-1g-18gb-0", body(`"target":"2060","workspace":"/etc"`), "", "unknown field"},
		"two values":    {"gpu-0-1g-18gb-0", good + good, "", "several values"},
		"kind":          {"gpu-0-1g-18gb-0", `{"apiVersion":"v1","kind":"Secret","target":"2060"}`, "", "this driver reads"},
		"no JSON":       {"gpu-0-1g-18gb-0", `target: 2060`, "", "cannot be read"},
		"long":          {"gpu-0-1g-18gb-0", body(`"target":"` + strings.Repeat("x", 11<<10) + `"`), "", "bytes"},
		"no target":     {"gpu-0-1g-18gb-0", fmt.Sprintf(`{"apiVersion":%q,"kind":%q}`, apiVersion, kind), "", "have to name a target"},
		"other target":  {"gpu-0-1g-18gb-0", good, target("a100"), "the claim cannot change it"},
		"device":        {"gpu-9-1g-18gb-0", good, "", "none of this node"},
		"path":          {"../../etc", good, "", "none of this node"},
		"unknown":       {"gpu-0-1g-18gb-0", target("no such card"), "", "unknown target"},
		"too small":     {"gpu-0-1g-18gb-0", target("3090"), "", "a 1g.18gb has 16384 MiB"},
	}
}

// TestForged: no claim gets more than its parameters may say.
func TestForged(t *testing.T) {
	w := newWorld(t, "1 x h200")
	for name, c := range forged() {
		t.Run(name, func(t *testing.T) {
			claim := w.claim(t, strings.ReplaceAll(name, " ", "-"), c.device, c.class)
			if c.claim != "" {
				claim.Status.Allocation.Devices.Config = append(claim.Status.Allocation.Devices.Config, opaque(resourceapi.AllocationConfigSourceClaim, c.claim))
			}
			results, err := w.PrepareResourceClaims(context.Background(), []*resourceapi.ResourceClaim{claim})
			check(t, err)
			if err := results[claim.UID].Err; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it is answered by %v, want %q", err, c.want)
			}
			if event := <-w.events; !strings.Contains(event, c.want) {
				t.Errorf("the event is %q", event)
			}
			w.unprepareAll(t, claim)
		})
	}
	foreign := w.claim(t, "foreign", "gpu-0-1g-18gb-0", target("2060"))
	foreign.UID = "../../x"
	results, err := w.PrepareResourceClaims(context.Background(), []*resourceapi.ResourceClaim{foreign})
	check(t, err)
	if err := results[foreign.UID].Err; err == nil || !strings.Contains(err.Error(), "is not the UID of a claim") {
		t.Errorf("a UID that is a path: %v", err)
	}
	w.untouched(t)
}

// TestDeletedMeanwhile: what a claim has left that was deleted while the driver was down is removed when it starts.
func TestDeletedMeanwhile(t *testing.T) {
	w := newWorld(t, "1 x h200")
	gone, kept := w.claim(t, "gone", "gpu-0-1g-18gb-0", target("2060")), w.claim(t, "kept", "gpu-0-1g-18gb-1", target("2060"))
	w.prepareAll(t, gone, kept)
	check(t, w.client.ResourceV1().ResourceClaims("default").Delete(context.Background(), "gone", metav1.DeleteOptions{}))
	check(t, w.sweep(context.Background()))
	if n := strings.Count(string(w.hardware(t)), `"profile": "1g.18gb"`); n != 1 {
		t.Errorf("there are %d slices", n)
	}
	w.unprepareAll(t, kept)
	w.untouched(t)
}
