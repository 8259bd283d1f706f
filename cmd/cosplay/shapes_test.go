package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/need"
)

// withShapes has a session on a host where the CPU computes, and one on a host where nothing is computed.
const withShapes = `
host "lab" { simulate = "1 x h200" }
host "paper" {
  simulate = "1 x h200"
  compute  = "shapes"
}
session "computed" {
  host   = "lab"
  target = "3060"
}
session "shaped" {
  host   = "paper"
  target = "3060"
}
`

func torchProgram(t *testing.T, name string) string {
	path, err := filepath.Abs(filepath.Join("../../scripts/torch", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// printed runs a program in a session and returns what it prints, without warnings.
func (p project) printed(session string, args ...string) string {
	p.t.Helper()
	c := p.command(append([]string{"exec", session, "--"}, args...)...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		p.t.Errorf("%v: %v\n%s", args, err, stderr.String())
	}
	return string(out)
}

// TestTorchShapes: where nothing is computed, programs have the peaks of memory that they have where the CPU computes.
func TestTorchShapes(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, withShapes)
	p.run("apply", "--auto-approve")
	for _, program := range []string{"cnn", "lstm", "amp", "checkpoint"} {
		t.Run(program, func(t *testing.T) {
			p := project{t, p.dir, p.env}
			computed := p.printed("computed", python, torchProgram(t, "peak.py"), program)
			shaped := p.printed("shaped", python, torchProgram(t, "peak.py"), program)
			if computed != shaped || !strings.HasPrefix(shaped, program+" ") {
				t.Errorf("computed:\n%sshaped:\n%s", computed, shaped)
			}
		})
	}
	p.run("destroy", "--auto-approve")
}

// values asks for values in all ways; each must fail, or print what stands for a number.
const values = `
import copy, torch, warnings
warnings.simplefilter("ignore")
x = torch.randn(4, 3, device="cuda")
y = torch.zeros(4, 3)
y.copy_(x)
for ask in (lambda: x.sum().item() > 3, lambda: bool(x.any()), lambda: int(x[0, 0]), lambda: float(x[0, 0]), lambda: [x][x[0, 0].item()],
            lambda: x[x > 0], lambda: x.nonzero(), lambda: x.masked_select(x > 0), lambda: torch.unique(x), lambda: torch.equal(x, x),
            lambda: x.cpu().numpy(), lambda: y.numpy(), lambda: (x.cpu() + 1).tolist(), lambda: torch.save(x, "x.pt"), lambda: x.to_sparse(),
            lambda: torch.nn.Parameter(torch.ones(2)).tolist(), lambda: torch.distributed.init_process_group("nccl", rank=0, world_size=1)):
    try:
        print("a value:", ask())
    except RuntimeError as error:
        print(error)
print("%.2f" % x.sum().item(), f"{x.sum():.3f} {x.sum().item() + 1}", x.sum())
print(torch.cuda.memory_allocated())
`

// TestTorchValues: code that depends on values gets an error that states the operation.
func TestTorchValues(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, withShapes)
	p.run("apply", "--auto-approve")
	lines := strings.Split(strings.TrimSpace(p.printed("shaped", python, "-c", values)), "\n")
	item := "Tensor.item(), or bool(), int() or float() of a tensor,"
	decision := "A decision by the number of Tensor.item()"
	want := []string{decision, item, item, item, decision, "Indexing with a boolean mask", "torch.nonzero", "torch.masked_select", "torch.unique", "torch.equal",
		"Tensor.numpy()", "Tensor.numpy()", "Tensor.tolist()", "torch.save, or pickle, of a tensor", "Tensor.to_sparse()", "Tensor.tolist()",
		"torch.distributed.init_process_group"}
	if len(lines) != len(want)+2 {
		t.Fatalf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, operation := range want {
		if !strings.HasPrefix(lines[i], operation+" needs the values of a tensor") || !strings.Contains(lines[i], `compute = "cpu"`) {
			t.Errorf("%s: %s", operation, lines[i])
		}
	}
	if got := lines[len(want):]; got[0] != "nan nan nan tensor(..., device='cuda:0', size=())" || got[1] != "512" {
		t.Errorf("it prints %q", got)
	}
	p.run("destroy", "--auto-approve")
}

// TestTorchSeven: a GPT of 7 billion parameters fits in 80 GiB with Adam, and in 24 and 48 it does not. The answer takes less
// than a minute and 2 GiB.
func TestTorchSeven(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, `
host "paper" {
  simulate = "3 x h200"
  compute  = "shapes"
}
session "gib24" { target = "3090" }
session "gib48" { target = "rtx-a6000" }
session "gib80" { target = "a100-80gb" }
`)
	p.run("apply", "--auto-approve")
	for _, c := range []struct{ session, fits string }{{"gib24", "no"}, {"gib48", "no"}, {"gib80", "yes"}} {
		line := p.printed(c.session, python, torchProgram(t, "seven.py"))
		t.Log(strings.TrimSpace(line))
		var parameters, allocated, reserved, seconds, total float64
		var resident int
		var fits string
		found := map[string]any{"fits": &fits, "parameters": &parameters, "allocated": &allocated, "reserved": &reserved, "seconds": &seconds,
			"resident": &resident, "total": &total}
		for _, field := range strings.Fields(line) {
			name, value, _ := strings.Cut(field, "=")
			if into := found[name]; into != nil {
				fmt.Sscan(value, into)
			}
		}
		if fits != c.fits || parameters < 6.9 || parameters > 7.1 || seconds >= 60 || resident == 0 || resident >= 2048 || allocated > reserved || reserved > total {
			t.Errorf("%s: %s", c.session, line)
		}
		// Parameters, gradients and two moments, of 2 bytes each, are the least that it needs.
		if least := parameters * 1e9 * 8 / (1 << 30); fits == "yes" && allocated < least {
			t.Errorf("%.2f GiB are less than %.2f", allocated, least)
		}
	}
	p.run("destroy", "--auto-approve")
}

// TestTorchRules compares the memory of small programs with a separate account of the allocator's rules.
func TestTorchRules(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	p := newProject(t, withShapes)
	p.run("apply", "--auto-approve")
	byRules := map[string]string{}
	for _, c := range []struct{ session, options string }{
		{"computed", ""}, {"shaped", ""}, {"shaped", "max_split_size_mb:30,roundup_power2_divisions:4"},
	} {
		variable := "PYTORCH_CUDA_ALLOC_CONF=" + c.options
		capacity, got, _ := strings.Cut(p.printed(c.session, "env", variable, python, torchProgram(t, "memory.py")), "\n")
		want, known := byRules[capacity+c.options]
		if !known {
			plain := bounded(t, python, torchProgram(t, "memory.py"), capacity)
			plain.Env, plain.Dir = append(os.Environ(), variable), t.TempDir()
			out, err := plain.Output()
			if err != nil {
				t.Fatalf("by the rules: %v", err)
			}
			want = string(out)
			byRules[capacity+c.options] = want
		}
		if want != got || strings.Count(got, "\n") < 20 {
			t.Errorf("%s %q has\n%s\nby the rules\n%s", c.session, c.options, got, want)
		}
	}
	p.run("destroy", "--auto-approve")
}

// toTheCap fills the memory twice, and takes all of it at once.
const toTheCap = `
import torch
free, total = torch.cuda.mem_get_info()
def fill():
    taken = []
    try:
        while True:
            taken.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError as error:
        assert "CUDA out of memory. Tried to allocate 64.00 MiB" in str(error), error
    assert torch.cuda.memory_allocated() == len(taken) << 26
    return len(taken)
first = fill()
assert torch.cuda.memory_allocated() == 0
second = fill()
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0 and torch.cuda.mem_get_info()[0] == free
for size in free // (2 << 20) * (2 << 20), free + 1:
    try:
        torch.empty(size, dtype=torch.uint8, device="cuda")
        print(total >> 20, first == second == free >> 26, free + (400 << 20) > total)
    except torch.cuda.OutOfMemoryError:
        print("out of memory", torch.cuda.memory_allocated())
`

// TestTorchCaps: a program has the target's memory and not a byte more, whatever this machine has, and after an error nothing
// is booked.
func TestTorchCaps(t *testing.T) {
	t.Parallel()
	python := need.Torch(t)
	text := "target \"two\" {\n  base = \"gtx-1650\"\n  vram = \"2GiB\"\n}\nhost \"paper\" {\n  simulate = \"6 x h200\"\n  compute  = \"shapes\"\n}\n"
	caps := []struct {
		target string
		mib    int
	}{{"two", 2048}, {"gtx-1650", 4096}, {"rtx-2060", 6144}, {"rtx-2070", 8192}, {"rtx-2080-ti", 11264}, {"rtx-3090", 24576}}
	for _, c := range caps {
		text += fmt.Sprintf("session \"s%d\" { target = %q }\n", c.mib, c.target)
	}
	p := newProject(t, text)
	p.run("apply", "--auto-approve")
	for _, c := range caps {
		got := p.printed(fmt.Sprintf("s%d", c.mib), python, "-c", toTheCap)
		if want := fmt.Sprintf("%d True True\nout of memory 0\n", c.mib); got != want {
			t.Errorf("%s prints %q, want %q", c.target, got, want)
		}
	}
	p.run("destroy", "--auto-approve")
}
