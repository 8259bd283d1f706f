package place

import (
	"slices"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// each gives all requests a number of devices.
func each(devices int, requests []Request) []Request {
	for i := range requests {
		requests[i].Want.GPUs = devices
	}
	return requests
}

// TestRefusedDevicesLeaveRoom places a session on the GPUs that an incomplete session of an earlier block leaves.
func TestRefusedDevicesLeaveRoom(t *testing.T) {
	gpus := rack("lab", times(5, "l40s")...)
	requests := join(each(3, ask("lab", "a", 2, "4090")), each(2, ask("lab", "b", 1, "4090")))
	r := Place(gpus, requests)
	check(t, gpus, requests, r)
	if len(r.Placed) != 2 || len(r.Refused) != 1 {
		t.Errorf("session.a[0] has 3 GPUs and session.b 2:\n%s", r)
	}
}

func modelAt(gpus []GPU, at Setup) string {
	i := slices.IndexFunc(gpus, func(g GPU) bool { return g.UUID == at.UUID })
	return gpus[i].Model.Name
}

// TestOneModelForAllDevices keeps the devices of a session on GPUs of one model.
func TestOneModelForAllDevices(t *testing.T) {
	for _, models := range [][]string{{"l40s", "rtx-4090", "l40s"}, {"rtx-4090", "l40s", "l40s"}, {"h200", "l40s", "h200", "l40s"}} {
		gpus := rack("lab", models...)
		requests := each(2, ask("lab", "a", 1, "2060"))
		r := Place(gpus, requests)
		check(t, gpus, requests, r)
		if len(r.Placed) != 1 || len(r.GPUs) != 2 || modelAt(gpus, r.GPUs[0]) != modelAt(gpus, r.GPUs[1]) {
			t.Errorf("%v: not on two of one model:\n%s", models, r)
		}
	}
	gpus := rack("lab", "l40s", "rtx-4090")
	r := Place(gpus, each(2, ask("lab", "a", 1, "2060")))
	if len(r.Refused) != 1 || !strings.Contains(r.Refused[0].What, "of one model") {
		t.Errorf("on two models:\n%s", r)
	}
}

// TestNoSlicesForSeveralDevices says why GPUs that stay in MIG mode are of no use.
func TestNoSlicesForSeveralDevices(t *testing.T) {
	for host, target := range map[string]string{"h200": "2060", "h100": "rtx-a2000-12gb"} { // the latter comes closer in a compute instance
		gpus := rack("lab", host, host)
		for i := range gpus {
			gpus[i].MIG, gpus[i].Fixed[resource.MIGMode] = true, true
		}
		requests := each(2, ask("lab", "a", 1, target))
		requests[0].Want.Fit.Prefer = resource.PreferBandwidth
		r := Place(gpus, requests)
		if len(r.Refused) != 1 || !strings.Contains(r.Refused[0].What, "a CUDA process enumerates one MIG device") {
			t.Errorf("%s on %s in MIG mode:\n%s", target, host, r)
		}
	}
}

// TestNoMoveThatIsNotEnough names no move of a session after which a device is still missing.
func TestNoMoveThatIsNotEnough(t *testing.T) {
	gpus, requests := rack("lab", times(3, "h200")...), ask("lab", "a", 2, "2060")
	one, two := at(gpus[1], "1g.18gb", 0), at(gpus[2], "1g.18gb", 0)
	requests[0].Kept, requests[1].Kept = one, two
	for i := range gpus[1:] {
		gpus[1+i].MIG = true
	}
	for devices, enough := range map[int]bool{2: true, 3: false} {
		r := Place(gpus, join(requests, each(devices, ask("lab", "b", 1, "a100-80gb"))))
		if len(r.Refused) != 1 || strings.Contains(r.Refused[0].Fix, "--replace") != enough {
			t.Errorf("%d devices:\n%s", devices, r)
		}
	}
}

// TestKeptWithoutADevice places a session again whose record lacks a device.
func TestKeptWithoutADevice(t *testing.T) {
	gpus, requests := rack("lab", "l40s", "l40s"), each(2, ask("lab", "a", 1, "2060"))
	requests[0].Kept = &resource.Slice{Host: "lab", GPU: gpus[1].UUID}
	if r := Place(gpus, requests); len(r.Placed) != 1 || len(r.Placed[0].More) != 1 {
		t.Errorf("not placed on both:\n%s", r)
	}
}

// TestWorstDeviceWarns: of a session with several devices one warning names them all, with the fit of the worst.
func TestWorstDeviceWarns(t *testing.T) {
	for _, clocks := range [][2]int{{1980, 1575}, {1575, 1980}} {
		gpus, requests := rack("lab", "h200", "h200"), ask("lab", "w", 1, "2060")
		gpus[0].FixedClockMHz, gpus[1].FixedClockMHz = &clocks[0], &clocks[1]
		requests[0].Want.GPUs = 2
		got := Place(gpus, requests).Warnings
		if len(got) != 1 || !strings.Contains(got[0].Text, "on GPU 0 and GPU 1 at 1980 MHz is off by FP32 +937 %") {
			t.Errorf("%v: %+v", clocks, got)
		}
	}
}
