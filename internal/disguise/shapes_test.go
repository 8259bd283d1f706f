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
try: torch.arange(x.argmax().item())
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

// Integers and booleans of a device keep the values that follow from data of the host. A hollow operand makes a result hollow.
func TestTorchShapesOfKnownValues(t *testing.T) {
	s := newTorchSession(t, "rtx-3090", "shapes")
	got := s.run(t, `
import copy, torch
ids = torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0]]).to("cuda")
mask, hollow = ids != 0, torch.randn(2, 4, 6, device="cuda")
print(mask.all().item(), mask.sum(1).tolist(), ids[mask], ids.unique().tolist(), torch.where(mask, ids, -1)[0].tolist(), ids.cpu().numpy()[1])
print(hollow[mask].shape, hollow[:, mask[0]].shape, hollow.repeat_interleave(ids[0], 1).shape, hollow[0, 0].masked_select(mask[:, :1]).shape, torch.full((2,), 4, device="cuda").tolist())
try: hollow[mask[:, :3]]
except IndexError as error: print(error)
def has_values(tensor):
    try: tensor.tolist()
    except RuntimeError: return False
    return True
position = torch.arange(4, device="cuda")
written, view = position.clone(), position[1:]
written[0] = hollow.argmax()
filled = position.clone().fill_(hollow.sum().item())
drawn = position.clone().random_(4)
large = torch.zeros(3 << 20, dtype=torch.int64, device="cuda")
print([has_values(t) for t in (position, view, copy.deepcopy(position), written, written[2:], position + written, filled, drawn, large, position.float(), position.half(), torch.zeros(2 << 20, device="cuda"), torch.zeros_like(hollow), hollow > 0, torch.randperm(3, device="cuda"), torch.ones_like(position, dtype=torch.bool))])
print(bool((torch.full((3, 3), float("-inf"), device="cuda").triu(1) == torch.full((3, 3), float("-inf")).triu(1).cuda()).all()))
view += 1
print(position.tolist())
graph, static = torch.cuda.CUDAGraph(), torch.tensor([1, 2], device="cuda")
with torch.cuda.graph(graph):
    made = static + 1
    position += 1
print(has_values(static), has_values(made), has_values(position))
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()): static.sum().item()
except RuntimeError as error: print(str(error).splitlines()[0])`)
	want := `False [3, 2] tensor([1, 2, 3, 4, 5], device='cuda:0') [0, 1, 2, 3, 4, 5] [1, 2, 3, -1] [4 5 0 0]
torch.Size([5, 6]) torch.Size([2, 3, 6]) torch.Size([2, 6, 6]) torch.Size([12]) [4, 4]
The shape of the mask [2, 3] does not match the shape [2, 4] that it indexes
[True, True, True, False, False, False, False, False, False, True, False, False, False, False, False, True]
True
[0, 2, 3, 4]
True False False
CUDA error: operation failed due to a previous error during capture`
	if got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// A model that decides by its masks, as those of transformers do, runs and has the peak that it has where the CPU computes.
func TestTorchShapesOfMasks(t *testing.T) {
	program := `
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        nn.Module.__init__(self)
        self.embedding, self.layer = nn.Embedding(64, 32), nn.Linear(32, 96)
    def forward(self, ids, attended):
        position = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
        packed = (position.diff(prepend=position[:, :1] - 1, dim=-1) != 1).cumsum(-1)
        hidden = self.embedding(ids)
        query, key, value = self.layer(hidden).chunk(3, -1)
        scores = query @ key.transpose(1, 2)
        allowed = position.unsqueeze(2) >= position.unsqueeze(1)
        if not (packed[:, -1] == 0).all():
            allowed = allowed & (packed.unsqueeze(2) == packed.unsqueeze(1))
        if not attended.all():
            allowed = allowed & attended.unsqueeze(1)
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        return (scores.softmax(-1) @ value)[attended]
model = Model().cuda()
ids = torch.arange(512).view(4, 128) % 64
attended = (torch.arange(128) < torch.tensor([[128], [100], [60], [128]])).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(2):
    result = model(ids.cuda(), attended)
    result.pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    print(tuple(result.shape), torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved())`
	computed := newTorchSession(t, "rtx-3090", "cpu").run(t, program)
	if got := newTorchSession(t, "rtx-3090", "shapes").run(t, program); got != computed || !strings.HasPrefix(got, "(416, 32) ") {
		t.Errorf("it prints\n%s\nand where the CPU computes\n%s", got, computed)
	}
}
