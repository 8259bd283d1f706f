package main

import (
	"fmt"
	"path/filepath"
	"regexp"
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
	for _, program := range []string{"linear", "cnn", "gpt", "lstm", "recurrent", "gan", "accumulate", "amp", "dropout", "attention", "checkpoint", "loader", "ddp 2"} {
		t.Run(program, func(t *testing.T) {
			words := strings.Fields(program)
			args := append([]string{python, filepath.Join(programs, words[0]+".py")}, words[1:]...)
			plain := bounded(t, args[0], args[1:]...)
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

// TestTorchInterface calls each documented function of torch.cuda, each kind of program that needs what a session without a
// GPU does not have, and each operation that autocast casts. The programs compare with the table in docs and with
// PyTorch's own messages and lists.
func TestTorchInterface(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, strings.Replace(fmt.Sprintf(withTorch, "3060"), "2 x", "3 x", 1)+`
session "strict" {
  target = "2060"
  strict = true
}
`)
	p.run("apply", "--auto-approve")
	programs, err := filepath.Abs("../../scripts/torch")
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{
		"cuda_functions.py ../../docs/reference/torch-cuda.md": `\d{3} functions: \d{2,} work, \d{2,} raise an error, \d+ are not applicable`,
		"works.py":        `\d{2,} programs that work on GPUs, 0 of them do not here`,
		"unsupported.py":  `\d{2,} programs, 0 of them with another result`,
		"two_devices.py":  `tensors of the host and of a device: 0 with another result`,
		"interrupts.py":   `handlers, finalizers and threads: as expected`,
		"autocast.py":     `1\d\d operations, 0 of them with another type`,
		"builds.py":       `CPU build, CUDA 11.7: classes and versions as on GPUs, nothing printed`,
		"operators.py 15": `\d{2} of \d{2} operators, \d{4} calls, 0 faults`,
	} {
		t.Run(program, func(t *testing.T) {
			args := []string{"exec", "pair", "--", python}
			for _, word := range strings.Fields(program) {
				if strings.Contains(word, ".") {
					word = filepath.Join(programs, word)
				}
				args = append(args, word)
			}
			out, err := p.command(args...).CombinedOutput()
			if strings.Contains(string(out), "The table has no column for PyTorch") {
				need.Lacking(t, "%s", out)
			}
			if err != nil || !regexp.MustCompile(want).Match(out) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	for _, made := range []string{`x.bfloat16()`, `x.to(torch.bfloat16)`, `torch.zeros(3, dtype=torch.bfloat16, device="cuda")`} {
		out, err := p.command("exec", "strict", "--", python, "-c", "import torch\nx = torch.ones(3, device='cuda')\n"+made).CombinedOutput()
		if want := "NVIDIA GeForce RTX 2060 has no torch.bfloat16, and the session says strict = true"; err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", made, err, out)
		}
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

// race takes memory from the moment that another program does, until there is none, and keeps it until both have ended this.
const race = `
import os, sys, time, torch
def meet(what):
    open(what + sys.argv[1], "w").close()
    while not all(os.path.exists(what + each) for each in "01"):
        time.sleep(0.001)
torch.cuda.mem_get_info()
taken = []
meet("started")
try:
    while True:
        taken.append(torch.empty(32 << 20, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError:
    meet("filled")
print(len(taken) * 32, torch.cuda.mem_get_info()[0] >> 20)
meet("printed")
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
	var each, free [2]int
	for i := range each {
		group.Go(func() {
			out := p.run("exec", "pair", "--", python, "-c", race, fmt.Sprint(i))
			fmt.Sscan(out, &each[i], &free[i])
		})
	}
	group.Wait()
	// Each program has a context of less than 500 MiB.
	if sum := each[0] + each[1]; each[0] == 0 || each[1] == 0 || sum > 6144 || sum < 5144 || free[0] != free[1] || free[0] >= 32 {
		t.Errorf("two programs have %v MiB, and %v are free", each, free)
	}
	if first, _ := took(1, false); first < 5500 {
		t.Errorf("after all programs there are %d MiB", first)
	}
	p.run("destroy", "--auto-approve")
}
