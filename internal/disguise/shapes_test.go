package disguise_test

import (
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/disguise"
	"cosplay/internal/resource"
)

// The Python part is needed where the CPU computes and where there are shapes only, also for a target that lacks nothing.
func TestComputeOfPython(t *testing.T) {
	target, err := catalog.Target("b200")
	check(t, err)
	for compute, wanted := range map[string]bool{"cpu": true, "shapes": true, "none": false, "": false} {
		s := resource.Session{Target: target, Compute: compute}
		if disguise.NeedsPython(s) != wanted {
			t.Errorf("%q: needed %t", compute, !wanted)
		}
	}
}

// A session whose tensors have shapes only says so, and needs no memory for what it books.
func TestTorchShapesMemory(t *testing.T) {
	s := newTorchSession(t, "rtx-3090", "shapes")
	got := s.run(t, `
import resource, torch
x = torch.empty(10 << 30, dtype=torch.uint8, device="cuda")
y = torch.zeros(3 << 28, device="cuda") + 1
print(x[5:].shape, (y * 2).device, y.to("cpu").shape, torch.cuda.memory_allocated() >> 20, torch.arange(3).sum().item())
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20, "KiB"`)
	if want := "torch.Size([10737418235]) cuda:0 torch.Size([805306368]) 13312 3"; got != want {
		t.Errorf("it prints %q, want %q", got, want)
	}
	got = s.run(t, `
import resource, torch
model = torch.nn.Linear(1 << 15, 1 << 15)
resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))
try: torch.empty(9 << 30, dtype=torch.uint8, device="cuda")
except RuntimeError as error: print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20)`)
	if !strings.HasPrefix(got, "this machine does not reserve 9.00 GiB for a tensor") || !strings.HasSuffix(got, "\nTrue") {
		t.Errorf("it prints %q", got)
	}
}
