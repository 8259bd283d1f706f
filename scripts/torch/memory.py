"""Small programs and the memory of each: peaks allocated and reserved, what is left of both, and retries.

    memory.py           on the session's GPU; the first line is the memory that it has
    memory.py CAPACITY  plainly on the CPU, with a separate account of the allocator's rules (rules.py)"""
import gc
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
device = "cpu" if len(sys.argv) > 1 else "cuda"


class Session:
    """The session's GPU, with the functions of rules.Watch."""

    OutOfMemoryError, empty_cache = torch.cuda.OutOfMemoryError, staticmethod(torch.cuda.empty_cache)

    def start(self):
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.reset_accumulated_memory_stats()

    def figures(self):
        return (torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_allocated(),
                torch.cuda.memory_reserved(), torch.cuda.memory_stats()["num_alloc_retries"])


def take(size):
    return torch.empty(size, dtype=torch.uint8, device=device)


def small(gpu):
    kept = [take(size) for size in (1, 511, 512, 513, 1000, 4096, 100 * KIB, MIB - 1, MIB)]
    return kept + [take(3000 * number) for number in range(1, 200)]


def medium(gpu):
    return [take(MIB + 1), take(5 * MIB), take(9 * MIB), take(10 * MIB - 512), take(10 * MIB - 513), take(3 * MIB)]


def large(gpu):
    return [take(size * MIB + extra) for size in (10, 11, 33, 64, 100, 199) for extra in (0, 1, 700 * KIB)]


def huge(gpu):
    first = take(3 * GIB)
    second = take(2 * GIB + 1)
    del first
    return second, take(3 * GIB - 5 * MIB)


def reuse(gpu):
    for size in (700, 80 * KIB, 2 * MIB, 30 * MIB, 90 * MIB):
        for _ in range(5):
            kept = take(size), take(size // 2)
    return kept


def fragments(gpu):
    kept = [take(4 * MIB + 4096 * number) for number in range(40)]
    del kept[::2]
    kept += [take(size) for size in (3 * MIB, 6 * MIB, 2 * MIB, 9 * MIB)]
    del kept[::3]
    return kept, [take(8 * MIB) for _ in range(5)]


def split_large(gpu):
    whole = take(200 * MIB)
    del whole
    kept = [take(size * MIB) for size in (50, 70, 30, 12, 45)]
    del kept[1:3]
    return kept, take(90 * MIB), take(11 * MIB)


def with_empty_cache(gpu):
    kept = []
    for size in (300 * KIB, 6 * MIB, 40 * MIB, 150 * MIB):
        gone, stays = take(size), take(size)
        kept.append(stays)
        del gone
        gpu.empty_cache()
        kept.append(take(size // 3))
    return kept


def oversize(gpu):
    for size in (70, 90, 60, 200, 75, 100, 65):
        gone = take(size * MIB)
        del gone
    return take(40 * MIB), take(95 * MIB)


def views(gpu):
    x = torch.zeros(1000, 1000, device=device)
    return x.t(), x.view(-1)[5:], x.unsqueeze(0).expand(4, -1, -1), x.detach(), x.chunk(3)


def in_place(gpu):
    x = torch.zeros(600, 500, device=device)
    x.add_(1).mul_(2).clamp_(0, 1)
    x[10:20] = 3
    return x.t_()


def dtypes(gpu):
    x = torch.ones(777, 333, device=device)
    return [x.to(dtype) for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.bool, torch.int64, torch.complex64)]


def arithmetic(gpu):
    x = torch.ones(1500, 1500, device=device)
    y = (x * 2 + 1).exp().sum(1, keepdim=True) * x - x.mean()
    return torch.cat([y, x]).softmax(0), torch.where(y > 0, y, x), y.argmax(1)


def steps(model, optimizer, x, loss_of=lambda y: y.float().square().mean(), count=3):
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x)).backward()
        optimizer.step()
    return model, optimizer


def perceptron():
    return nn.Sequential(nn.Linear(700, 900, device=device), nn.ReLU(), nn.Dropout(0.2), nn.Linear(900, 900, device=device), nn.GELU(),
                         nn.Linear(900, 10, device=device))


def sgd(gpu):
    model = perceptron()
    return steps(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False), torch.ones(60, 700, device=device))


def adam(gpu):
    model = perceptron()
    return steps(model, torch.optim.Adam(model.parameters(), lr=0.1, foreach=False), torch.ones(60, 700, device=device))


def clipped(gpu):
    model = perceptron()
    model(torch.ones(5, 700, device=device)).sum().backward()
    return model, [p.grad.mul_(0.5) for p in model.parameters()], torch.stack([p.grad.norm() for p in model.parameters()]).norm()


def convolutions(gpu):
    model = nn.Sequential(nn.Conv2d(3, 24, 3, device=device), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 48, 5, stride=2, device=device), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10, device=device))
    return steps(model, torch.optim.SGD(model.parameters(), lr=0.1, foreach=False), torch.ones(8, 3, 96, 96, device=device))


def normalized(gpu):
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1, device=device), nn.BatchNorm2d(32, track_running_stats=False, device=device), nn.SiLU(),
                          nn.Conv2d(32, 32, 3, padding=1, groups=4, device=device), nn.GroupNorm(4, 32, device=device), nn.ReLU(inplace=True))
    return steps(model, torch.optim.Adam(model.parameters(), lr=0.1, foreach=False), torch.ones(4, 3, 64, 64, device=device))


def attention(gpu):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.project, self.out, self.norm = nn.Linear(128, 384, device=device), nn.Linear(128, 128, device=device), nn.LayerNorm(128, device=device)

        def forward(self, x):
            q, k, v = (part.reshape(2, 200, 4, 32).transpose(1, 2) for part in self.project(self.norm(x)).chunk(3, -1))
            return x + self.out(((q @ k.transpose(2, 3) / 6).softmax(-1) @ v).transpose(1, 2).reshape(2, 200, 128))

    model = nn.Sequential(Layer(), Layer(), Layer())
    return steps(model, torch.optim.Adam(model.parameters(), lr=0.1, foreach=False), torch.ones(2, 200, 128, device=device))


def checkpointed(gpu):
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Sequential(nn.Linear(256, 1024, device=device), nn.GELU(), nn.Linear(1024, 256, device=device)) for _ in range(5))

        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return x

    model = Deep()
    return steps(model, torch.optim.SGD(model.parameters(), lr=0.1, foreach=False), torch.ones(80, 256, device=device, requires_grad=True))


def embedding(gpu):
    model = nn.Sequential(nn.Embedding(5000, 64, device=device), nn.Linear(64, 5000, device=device))
    x = torch.zeros(6, 50, dtype=torch.long, device=device)
    return steps(model, torch.optim.Adam(model.parameters(), lr=0.1, foreach=False), x, lambda y: F.cross_entropy(y.flatten(0, 1), x.flatten()))


def fill(gpu, size, kept):
    try:
        while True:
            kept.append(take(size))
    except gpu.OutOfMemoryError:
        return kept


def exhausted(gpu):
    """After an error all that was released is available again."""
    kept = []
    for size in (700 * MIB, 90 * MIB, 7 * MIB, 200 * KIB):
        fill(gpu, size, kept)
    del kept[::2]
    fill(gpu, 45 * MIB, kept)
    return fill(gpu, 500 * KIB, kept)


def retried(gpu):
    """What is cached in segments of other sizes is returned to the driver before an error."""
    kept = fill(gpu, 400 * MIB, [])
    count = len(kept)
    del kept[:5]
    kept.append(take(1500 * MIB))
    del kept[:3]
    return fill(gpu, 64 * MIB, kept), count


PROGRAMS = (small, medium, large, huge, reuse, fragments, split_large, with_empty_cache, oversize, views, in_place, dtypes, arithmetic, sgd, adam, clipped,
            convolutions, normalized, attention, checkpointed, embedding, exhausted, retried)


def main():
    torch.set_num_threads(1)
    if device == "cuda":
        gpu = Session()
        print(torch.cuda.mem_get_info()[0], flush=True)
        run(gpu)
    else:
        import rules

        gpu = rules.Watch(int(sys.argv[1]))
        with gpu:
            run(gpu)


def run(gpu):
    for program in PROGRAMS:
        gpu.start()
        kept = program(gpu)
        gc.collect()
        print(program.__name__, *gpu.figures(), flush=True)
        del kept
        gc.collect()


main()
