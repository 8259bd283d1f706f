"""CPU time of steps. It runs one step for each line of its input, so that scripts/torch-cost can let a plain process and a
session take turns. Its argument chooses what a step is."""
import importlib.util
import sys
import time

from common import *

from torch.utils._python_dispatch import TorchDispatchMode


def training(model, optimizer, loss_of, batches):
    def step(number):
        optimizer.zero_grad()
        loss = loss_of(*batches[number % len(batches)])
        loss.backward()
        optimizer.step()
        return loss

    return step


def resnet18():
    import torchvision

    model = torchvision.models.resnet18(num_classes=10).to(device)
    labels = torch.randint(10, (4,)).to(device)
    return training(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
                    lambda x: torch.nn.functional.cross_entropy(model(x), labels), [(torch.randn(4, 3, 64, 64).to(device),) for _ in range(4)])


def gpt():
    from gpt_model import GPT

    model = GPT(width=256, heads=4, layers=4, length=128).to(device)
    return training(model, torch.optim.AdamW(model.parameters(), lr=3e-4),
                    lambda t: torch.nn.functional.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten()),
                    [(torch.randint(256, (8, 129)).to(device),) for _ in range(4)])


def recurrent(kind, packed):
    """Two layers of 128 on sequences of up to 50 steps."""
    network = kind(64, 128, 2).to(device)
    out = torch.nn.Linear(128, 10).to(device)
    lengths = torch.arange(50, 34, -1)

    def loss_of(x, y):
        if packed:
            x = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
        hidden = network(x)[1]
        last = hidden[0] if isinstance(hidden, tuple) else hidden
        return torch.nn.functional.cross_entropy(out(last[-1]), y)

    return training(torch.nn.ModuleList((network, out)), torch.optim.Adam([*network.parameters(), *out.parameters()], lr=1e-3), loss_of,
                    [(torch.randn(50, 16, 64).to(device), torch.randint(10, (16,)).to(device)) for _ in range(4)])


def detector():
    import torchvision

    model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5).to(device)
    boxes = torch.tensor([[20.0, 30.0, 120.0, 140.0], [100.0, 90.0, 220.0, 200.0]])
    targets = [{"boxes": boxes.to(device), "labels": torch.tensor([1, 2]).to(device)} for _ in range(2)]
    return training(model, torch.optim.SGD(model.parameters(), lr=1e-3), lambda *images: sum(model(list(images), targets).values()),
                    [tuple(torch.rand(3, 240, 240).to(device) for _ in range(2)) for _ in range(4)])


def inference():
    import torchvision

    model = torchvision.models.resnet18(num_classes=10).to(device).eval()
    batches = [torch.randn(4, 3, 64, 64) for _ in range(4)]

    def step(number):
        with torch.inference_mode():
            scores = model(batches[number % 4].to(device)).softmax(1)
            return scores.max(1).values.cpu().sum()

    return step


def small():
    """A thousand operations on a few numbers each."""
    x, y = torch.randn(4, 4).to(device), torch.randn(4, 4).to(device)

    def step(number):
        z = x
        for _ in range(200):
            z = (z.mm(y) + x).tanh_().view(16).reshape(4, 4)
        return z.sum()

    return step


PROGRAMS = {"resnet18": resnet18, "gpt": gpt, "lstm": lambda: recurrent(torch.nn.LSTM, False), "gru": lambda: recurrent(torch.nn.GRU, False),
            "lstm-packed": lambda: recurrent(torch.nn.LSTM, True), "gru-packed": lambda: recurrent(torch.nn.GRU, True),
            "detector": detector, "inference": inference, "small": small}


class Count(TorchDispatchMode):
    operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.operations += 1
        return func(*args, **(kwargs or {}))


if sys.argv[1] in ("resnet18", "detector", "inference") and importlib.util.find_spec("torchvision") is None:
    print("@ skipped", flush=True)
    sys.exit()
step = PROGRAMS[sys.argv[1]]()
step(0)  # makes the optimizer's state
with Count():
    step(1)
print("@", device, Count.operations, flush=True)
for number, line in enumerate(sys.stdin):
    started = time.process_time()
    result = step(number)
    print("@", time.process_time() - started, result.item().hex(), flush=True)
