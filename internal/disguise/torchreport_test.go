package disguise_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/disguise"
	"cosplay/internal/resource"
)

// reports runs a program that may fail, and returns what it prints and the report.
func (s torchSession) reports(t *testing.T, args ...string) (string, resource.Report) {
	t.Helper()
	c := exec.Command(torchPython, args...)
	c.Env = s.env
	out, _ := c.CombinedOutput()
	r, err := disguise.ReadReport(s.dir)
	check(t, err)
	if len(r.Programs) == 0 {
		t.Fatalf("no program reports: %s", out)
	}
	return string(out), r
}

// The operations and copies of a known network are those of the closed form.
func TestTorchReport(t *testing.T) {
	s := newTorchSession(t, "rtx-2060", "cpu")
	out, r := s.reports(t, "../../scripts/torch/counted.py")
	var want struct {
		FLOPs    float64 `json:"flops"`
		ToDevice int     `json:"to_device"`
		ToHost   int     `json:"to_host"`
		Between  int     `json:"between"`
	}
	check(t, json.Unmarshal([]byte(out), &want))
	p := r.Programs[0]
	if p.FLOPs != want.FLOPs || p.ToDevice != want.ToDevice || p.ToHost != want.ToHost || p.Between != want.Between || want.FLOPs < 900_000 {
		t.Errorf("the report has %+v, want %+v", p.Work, want)
	}
	if p.Name != "counted.py" || p.Launches < 20 || p.End == 0 || p.Failure != "" || len(p.Devices) != 1 || p.Devices[0].Reserved != 2<<20 {
		t.Errorf("the report has %+v", r)
	}
}

const (
	tooMuch = `torch.empty(7 << 30, dtype=torch.uint8, device="cuda")`
	caught  = "\ntry: " + tooMuch + "\nexcept torch.cuda.OutOfMemoryError: pass"
)

// The report says how each program ended, whatever ended it.
func TestTorchReportOfEnds(t *testing.T) {
	s := newTorchSession(t, "rtx-2060", "cpu")
	seen := 0
	for _, test := range []struct {
		name, program string
		failure       string
		refused       int
		reserved      int // MiB
	}{
		{"plainly", "x = torch.ones(3).cuda()", "", 0, 2},
		{"with another exit code", "x = torch.ones(3).cuda(); import sys; sys.exit(3)", "", 0, 2},
		{"by an error", "x = torch.ones(3).cuda(); x.missing", "AttributeError", 0, 2},
		{"out of memory", "x = torch.ones(3).cuda(); " + tooMuch, "OutOfMemoryError", 1, 2},
		{"after it caught that twice", "x = torch.ones(3).cuda()" + caught + caught, "", 2, 2},
		{"after it freed memory and got as much", `x = torch.ones(3).cuda()
for _ in range(3):
    try: y = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(8)]
    except torch.cuda.OutOfMemoryError: torch.cuda.empty_cache()`, "", 3, 5<<10 + 2},
		{"after it reset its peaks", "x = torch.ones(25 << 18).cuda(); del x; torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats(); x = torch.ones(3).cuda()", "", 0, 26},
		{"with a thread", "import threading\nt = threading.Thread(target=lambda: torch.ones(3).cuda().mul_(2)); t.start(); t.join()", "", 0, 2},
		{"in a forked process of multiprocessing", `import multiprocessing
def work():
    x = torch.ones(3).cuda()
    ` + tooMuch + `
p = multiprocessing.get_context("fork").Process(target=work); p.start(); p.join()`, "OutOfMemoryError", 1, 2},
		{"after a fork that uses nothing", "x = torch.ones(3).cuda()\nimport os\nif os.fork() == 0: raise SystemExit\nos.wait()", "", 0, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, r := s.reports(t, "-c", "import torch\n"+test.program)
			seen++
			p := r.Programs[len(r.Programs)-1]
			if len(r.Programs) != seen || p.Name != "python" || p.Failure != test.failure || p.OutOfMemory != test.refused || p.End == 0 || p.Launches == 0 || p.Devices[0].Reserved != test.reserved<<20 {
				t.Errorf("%d programs, the last %+v\n%s", len(r.Programs), p, out)
			}
		})
	}
	// Each error counts once in the session's account, too, though the allocator tries again.
	if u, err := disguise.ReadUsage(filepath.Join(s.dir, disguise.UsageFile)); err != nil || u.Refused != 7 || u.Overcome != 0 {
		t.Errorf("%v: %+v", err, u)
	}
}

// A program that is killed leaves its figures of a second before; one that only imports PyTorch leaves none, and prints
// no summary.
func TestTorchReportOfKilledProgram(t *testing.T) {
	s := newTorchSession(t, "rtx-2060", "cpu")
	out, r := s.reports(t, "-c", `import os, time, torch
x, begun = torch.ones(3).cuda(), time.time()
while time.time() < begun + 1.5: x += 1
os.kill(os.getpid(), 9)`)
	if p := r.Programs[0]; p.End != 0 || p.Launches < 100 || p.Launches%64 != 0 || p.Updated < p.Start || out != "" {
		t.Errorf("%+v %s", p, out)
	}
	s.env = append(s.env, "COSPLAY_REPORT=1")
	if out, r = s.reports(t, "-c", "import torch; torch.ones(3) @ torch.ones(3)"); len(r.Programs) != 1 || out != "" {
		t.Errorf("%d programs: %s", len(r.Programs), out)
	}
	out, r = s.reports(t, "-c", `import torch; (torch.ones(3, 3).cuda() @ torch.ones(3, 3).cuda()).sum().item()`)
	if want := ": peak of cuda:0 2.00 MiB, 4 launches, 54 floating point operations, 72 bytes to the GPU, 4 bytes to the host, 0 bytes between GPUs\n"; len(r.Programs) != 2 || !strings.HasPrefix(out, "cosplay: python (pid ") || !strings.HasSuffix(out, want) {
		t.Errorf("the summary is %s", out)
	}
}
