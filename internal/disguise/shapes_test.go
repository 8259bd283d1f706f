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

// Code that only checks or counts values runs without them, and the error for a size states the number.
func TestTorchShapesOfCode(t *testing.T) {
	s := newTorchSession(t, "rtx-3090", "shapes")
	got := s.run(t, `
import math, torch, torch.nn.functional as F
x, y = torch.rand(4, 3, device="cuda", requires_grad=True), torch.tensor([0, 1, 2, 0]).cuda()
loss = F.cross_entropy(x, y, label_smoothing=.1)
loss.backward()
print(x.grad.shape, math.isfinite(loss.item()), math.isnan(loss.item()), math.isnan(float("nan")))
print(F.one_hot(y, 5).shape, F.one_hot(y, 5).device, F.one_hot(torch.tensor([1]), 2).tolist())
print(torch.distributions.Normal(x, x.exp()).log_prob(x).shape, torch.distributions.Categorical(logits=x).log_prob(y).shape)
for kind in torch.tensor, tuple:
    log = torch.randn(5, 2, 3, device="cuda", requires_grad=True)
    F.ctc_loss(log.log_softmax(2), torch.tensor([[1, 2], [1, 2]]).cuda(), kind([5, 5]), kind([2, 2])).backward()
    print(log.grad.shape)
optimizer = torch.optim.ASGD([x])
x.sum().backward()
optimizer.step()
try: torch.arange(y.max().item())
except RuntimeError as error: print(str(error)[:47])`)
	want := `torch.Size([4, 3]) True False True
torch.Size([4, 5]) cuda:0 [[0, 1]]
torch.Size([4, 3]) torch.Size([4])
torch.Size([5, 2, 3])
torch.Size([5, 2, 3])
A decision by the number of Tensor.item() needs`
	if got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}
