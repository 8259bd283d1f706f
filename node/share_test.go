package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cosplay/internal/public"
)

// refusedBy fails unless a claim is refused for a reason.
func (w *world) refusedBy(t *testing.T, claim *resourceapi.ResourceClaim, why string) {
	t.Helper()
	results, err := w.PrepareResourceClaims(context.Background(), []*resourceapi.ResourceClaim{claim})
	check(t, err)
	if err := results[claim.UID].Err; err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%s is answered by %v, want %q", claim.Name, err, why)
	}
}

// TestShared: claims that share a whole GPU are sessions of one project, and none changes the clock of those that run, or takes
// them with it when it is refused or removed.
func TestShared(t *testing.T) {
	w := newWorld(t, "1 x l40s")
	w.sharing = "time-slice"
	first := share(w.claim(t, "first", "gpu-0-whole", target("2060")), 6144)
	device := w.prepareAll(t, first)[0]
	locked := lock(t, w)
	second := share(w.claim(t, "second", "gpu-0-whole", target("3070")), 8192)
	w.prepareAll(t, second, first)
	w.refusedBy(t, share(w.claim(t, "strict", "gpu-0-whole", strings.Replace(target("3070"), `"target"`, `"maxError":"5%","target"`, 1)), 8192), "maxError is 5 %")
	w.refusedBy(t, share(w.claim(t, "small", "gpu-0-whole", target("3070")), 6144), "has 6144 MiB, and rtx-3070 has 8192 MiB")
	if now := lock(t, w); now != locked {
		t.Errorf("the clock lock was %s and is %s", locked, now)
	}
	w.unprepareAll(t, second)
	if text := specification(t, device); !strings.Contains(text, "GPU_COSPLAY_PRETTY=NVIDIA GeForce RTX 2060") {
		t.Errorf("the first has %s", text)
	}
	if now := lock(t, w); now != locked {
		t.Errorf("the clock lock was %s and is %s", locked, now)
	}
	w.unprepareAll(t, first)
	w.untouched(t)
}

// TestRemovedHalfway: a call that was killed after it had written the configuration, and before it removed the session, is
// completed by kubelet's next one.
func TestRemovedHalfway(t *testing.T) {
	w := newWorld(t, "1 x l40s")
	w.sharing = "time-slice"
	first, second := share(w.claim(t, "first", "gpu-0-whole", target("2060")), 6144), share(w.claim(t, "second", "gpu-0-whole", target("2060")), 6144)
	w.prepareAll(t, first, second)
	p := project{w.projects, ofGPU + gpusIn(w.driver)[0].UUID}
	c, err := p.read()
	check(t, err)
	delete(c.Session, sessionName(second.UID, 0))
	check(t, p.write(p.host(), c.Session))
	w.unprepareAll(t, second)
	if slices.Contains(p.claims(), second.UID) {
		t.Error("the second is not removed")
	}
	check(t, p.write(p.host(), nil))
	w.repair(context.Background())
	w.untouched(t)
	w.unprepareAll(t, first)
}

// TestParts: no claim gets a GPU for a part that counts as nothing, or of which the scheduler gave it a part of each of two.
func TestParts(t *testing.T) {
	w := newWorld(t, "2 x l40s")
	w.sharing = "time-slice"
	nothing := share(w.claim(t, "nothing", "gpu-0-whole", target("2060")), 0)
	w.refusedBy(t, nothing, "it has 0 of the GPU's memory")
	two := share(w.claim(t, "two", "gpu-0-whole", target("2060")), 6144)
	results := &two.Status.Allocation.Devices.Results
	*results = append(*results, (*results)[0])
	(*results)[1].Device = w.device("gpu-1-whole")
	w.refusedBy(t, two, "parts of several GPUs")
	w.sharing = ""
	w.refusedBy(t, share(w.claim(t, "none", "gpu-0-whole", target("2060")), 6144), "of a GPU that claims share")
	w.unprepareAll(t, nothing, two)
	w.untouched(t)
}

// TestSubrequest: what a claim states for a request holds for each choice of it.
func TestSubrequest(t *testing.T) {
	w := newWorld(t, "1 x h200")
	c := w.claim(t, "choice", "gpu-0-1g-18gb-0", target("2060"))
	c.Status.Allocation.Devices.Results[0].Request = "gpu/small"
	strict := opaque(resourceapi.AllocationConfigSourceClaim, `{"apiVersion":"`+apiVersion+`","kind":"`+kind+`","strict":true}`)
	strict.Requests = []string{"gpu"}
	c.Status.Allocation.Devices.Config = append(c.Status.Allocation.Devices.Config, strict)
	if p, err := of(c, "gpu/small"); err != nil || !p.Strict {
		t.Errorf("the parameters are %+v, %v", p, err)
	}
	if p, err := of(c, "other"); err != nil || p.Strict {
		t.Errorf("those of another request are %+v, %v", p, err)
	}
}

// lock is the clock lock of the simulated host.
func lock(t *testing.T, w *world) string {
	t.Helper()
	_, after, _ := strings.Cut(string(w.hardware(t)), `"clock_lock_mhz": `)
	number, _, _ := strings.Cut(after, "\n")
	return number
}

// TestAlone: a claim that takes all of a GPU that could be shared has it alone, and one with several GPUs is one session.
func TestAlone(t *testing.T) {
	w := newWorld(t, "3 x l40s")
	w.sharing = "mps"
	whole := share(w.claim(t, "whole", "gpu-2-whole", target("3090")), 46068)
	pair := w.claim(t, "pair", "gpu-0-whole", target("3090"))
	results := &pair.Status.Allocation.Devices.Results
	*results = append(*results, (*results)[0])
	(*results)[1].Device = w.device("gpu-1-whole")
	w.prepareAll(t, whole)
	answer, err := w.PrepareResourceClaims(context.Background(), []*resourceapi.ResourceClaim{pair})
	check(t, err)
	devices := answer[pair.UID].Devices
	if answer[pair.UID].Err != nil || len(devices) != 2 || len(devices[0].CDIDeviceIDs) != 1 || len(devices[1].CDIDeviceIDs) != 0 {
		t.Fatalf("two GPUs: %+v", answer[pair.UID])
	}
	var made public.Sessions
	check(t, project{w.projects, ofClaim + string(pair.UID)}.ask(context.Background(), &made, "ps"))
	if len(made.Sessions) != 1 || len(made.Sessions[0].More) != 1 {
		t.Errorf("the session of both is %+v", made.Sessions)
	}
	w.unprepareAll(t, whole, pair)
	w.untouched(t)
}

// TestSeveralSlices: one request cannot have two slices, since a program would find one of them.
func TestSeveralSlices(t *testing.T) {
	w := newWorld(t, "1 x h200")
	two := w.claim(t, "two", "gpu-0-1g-18gb-0", target("2060"))
	results := &two.Status.Allocation.Devices.Results
	*results = append(*results, (*results)[0])
	(*results)[1].Device = w.device("gpu-0-1g-18gb-1")
	w.refusedBy(t, two, "one request has 2 devices")
	(*results)[1].Request = "other" // of another container
	two.Status.Allocation.Devices.Config = append(two.Status.Allocation.Devices.Config, opaque(resourceapi.AllocationConfigSourceClass, target("2060")))
	answer, err := w.PrepareResourceClaims(context.Background(), []*resourceapi.ResourceClaim{two})
	check(t, err)
	devices := answer[two.UID].Devices
	if answer[two.UID].Err != nil || len(devices) != 2 || devices[0].CDIDeviceIDs[0] == devices[1].CDIDeviceIDs[0] {
		t.Fatalf("two requests: %+v", answer[two.UID])
	}
	w.unprepareAll(t, two)
	w.untouched(t)
}

// TestFraction: a claim can have a part of the node's own GPU in place of a target.
func TestFraction(t *testing.T) {
	w := newWorld(t, "1 x h200")
	c := w.claim(t, "part", "gpu-0-2g-35gb-0", `{"apiVersion":"`+apiVersion+`","kind":"`+kind+`","fraction":"20%"}`)
	device := w.prepareAll(t, c)[0]
	if text := specification(t, device); !strings.Contains(text, "GPU_COSPLAY_PRETTY=NVIDIA H200") {
		t.Errorf("the device is %s", text)
	}
	now, err := w.client.ResourceV1().ResourceClaims("default").Get(context.Background(), "part", metav1.GetOptions{})
	check(t, err)
	var data struct {
		Slice     string
		ClockMHz  int
		FP32Ratio float64
	}
	check(t, json.Unmarshal(now.Status.Devices[0].Data.Raw, &data))
	if !strings.HasPrefix(data.Slice, "MIG-") || data.ClockMHz < 300 || data.FP32Ratio < 0.5 {
		t.Errorf("the status has %+v", data)
	}
	w.unprepareAll(t, c)
	w.untouched(t)
}

// TestSharedWhole: claims that share a GPU share the whole of it, whatever slice comes closer to their targets.
func TestSharedWhole(t *testing.T) {
	w := newWorld(t, "1 x h200")
	for _, w.sharing = range []string{"mps", "time-slice"} {
		first, second := share(w.claim(t, "first"+w.sharing, "gpu-0-whole", target("3090")), 24576), share(w.claim(t, "second"+w.sharing, "gpu-0-whole", target("2060")), 6144)
		w.prepareAll(t, first)
		w.prepareAll(t, second)
		if now := string(w.hardware(t)); !strings.Contains(now, `"mig": false`) {
			t.Errorf("by %s, the host is %s", w.sharing, now)
		}
		w.unprepareAll(t, first, second)
		w.untouched(t)
	}
}
