package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cosplay/internal/need"
)

// withTorch has a session with two devices of a target.
const withTorch = `
host "lab" { simulate = "2 x l40s" }
session "pair" {
  target = "%s"
  gpus   = 2
}
`

// TestTorch runs programs of PyTorch on the CPU and in a session of a simulated host, where the CPU computes under the
// name of the GPU: what they print is equal to the last bit.
func TestTorch(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, fmt.Sprintf(withTorch, "3060"))
	p.run("apply", "--auto-approve")
	programs, err := filepath.Abs("../../scripts/torch")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"linear", "cnn", "gpt", "lstm", "gan", "accumulate", "amp", "checkpoint", "loader", "ddp 2"} {
		t.Run(program, func(t *testing.T) {
			words := strings.Fields(program)
			args := append([]string{python, filepath.Join(programs, words[0]+".py")}, words[1:]...)
			plain := exec.Command(args[0], args[1:]...)
			plain.Dir = t.TempDir()
			want, err := plain.Output()
			if err != nil {
				t.Fatalf("on the CPU: %v", err)
			}
			got, err := p.command(append([]string{"exec", "pair", "--"}, args...)...).Output()
			if err != nil {
				t.Errorf("in the session: %v", err)
			}
			if steps := strings.Count(string(got), "0x"); string(got) != string(want) || steps < 3 {
				t.Errorf("in the session %d numbers:\n%s\non the CPU:\n%s", steps, got, want)
			}
		})
	}
	p.run("destroy", "--auto-approve")
}

// fill takes memory until there is none, and says how much it had. Then it has all of it again, after PyTorch's own error.
const fill = `
import torch
device = torch.device("cuda:%d")
def fill():
    taken = []
    try:
        while True:
            taken.append(torch.empty(64 << 20, dtype=torch.uint8, device=device))
    except torch.cuda.OutOfMemoryError as error:
        assert "CUDA out of memory. Tried to allocate 64.00 MiB" in str(error), error
    return len(taken) * 64
first = fill()
assert torch.cuda.memory_allocated(device) == 0
torch.cuda.empty_cache()
print(first, fill() if %s else 0)
`

// TestTorchMemory: a program runs out of memory where the target would, each device has its limit, and two programs of a
// session share it.
func TestTorchMemory(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, fmt.Sprintf(withTorch, "2060"))
	p.run("apply", "--auto-approve")
	took := func(device int, twice bool) (first, second int) {
		out := p.run("exec", "pair", "--", python, "-c", fmt.Sprintf(fill, device, map[bool]string{true: "True", false: "False"}[twice]))
		if _, err := fmt.Sscan(out, &first, &second); err != nil {
			t.Errorf("%q: %v", out, err)
		}
		return first, second
	}
	for device := range 2 {
		if first, second := took(device, true); first < 5500 || first > 6144 || second != first {
			t.Errorf("device %d has %d MiB, and then %d", device, first, second)
		}
	}
	var group sync.WaitGroup
	var each [2]int
	for i := range each {
		group.Go(func() { each[i], _ = took(0, false) })
	}
	group.Wait()
	if sum := each[0] + each[1]; each[0] == 0 || each[1] == 0 || max(each[0], each[1]) > 6144 || sum < 5500 {
		t.Errorf("two programs have %v MiB", each)
	}
	if first, _ := took(1, false); first < 5500 {
		t.Errorf("after all programs there are %d MiB", first)
	}
	p.run("destroy", "--auto-approve")
}
