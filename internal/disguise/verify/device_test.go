package verify

import (
	"strings"
	"testing"
)

// TestJudgeDevice: the cap of a later device is checked, and a result names the device.
func TestJudgeDevice(t *testing.T) {
	w := Wanted{Name: "RTX 2060", UUID: "GPU-2", MemoryMiB: 6144, CUDA: true}
	for below, want := range map[string]Outcome{"6400000000 0": Passed, "6400000000 2": Failed, "7400000000 0": Failed} {
		said := strings.Join([]string{"cuda.load ok", "cuda.init ok", "cuda.name RTX 2060", "cuda.uuid GPU-2", "one.below " + below, "one.above 6500000000 2"}, "\x00")
		in := []Inside{{Way: Exec, Answers: map[string]Output{askProbe: {Text: said}}}}
		checked := false
		for _, r := range JudgeDevice(1, w, in, Observed{}) {
			if r.Check != "cuda.below" {
				continue
			}
			checked = true
			if r.Outcome != want || !strings.HasPrefix(r.Expected, "device 1: ") {
				t.Errorf("%s: %+v, want %s", below, r, want)
			}
		}
		if !checked {
			t.Error("the cap is not checked")
		}
	}
}

// TestVacantDevice: nothing is checked in a later device of a session that has no place for programs now.
func TestVacantDevice(t *testing.T) {
	w := Wanted{Name: "RTX 2060", UUID: "GPU-2", MemoryMiB: 6144, CUDA: true}
	for _, r := range JudgeDevice(1, w, []Inside{{Way: Exec, Vacant: "no container has the device"}}, Observed{}) {
		if r.Way == Exec {
			t.Errorf("checked: %+v", r)
		}
	}
}
