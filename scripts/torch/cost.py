"""CPU time of training steps. It runs one step for each line of its input, so that scripts/torch-cost can let a plain
process and a session take turns."""
import sys
import time

from common import *

from torch.utils._python_dispatch import TorchDispatchMode

if sys.argv[1] == "gpt":
    from gpt_model import GPT

    model = GPT(width=256, heads=4, layers=4, length=128).to(device)
    batches = [torch.randint(256, (8, 129)).to(device) for _ in range(4)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def loss_of(t):
        return torch.nn.functional.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())
else:
    import torchvision

    model = torchvision.models.resnet18(num_classes=10).to(device)
    batches = [torch.randn(4, 3, 64, 64).to(device) for _ in range(4)]
    labels = torch.randint(10, (4,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def loss_of(x):
        return torch.nn.functional.cross_entropy(model(x), labels)


def step(number):
    optimizer.zero_grad()
    loss = loss_of(batches[number % 4])
    loss.backward()
    optimizer.step()
    return loss


class Count(TorchDispatchMode):
    operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.operations += 1
        return func(*args, **(kwargs or {}))


step(0)  # makes the optimizer's state
with Count():
    step(1)
print("@", device, Count.operations, flush=True)
for number, line in enumerate(sys.stdin):
    started = time.process_time()
    loss = step(number)
    print("@", time.process_time() - started, loss.item().hex(), flush=True)
