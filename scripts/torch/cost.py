"""CPU time of training steps. Run it plain and in a session, in turns."""
import sys
import time

from common import *

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

spent = []
for step in range(int(sys.argv[2]) + 2):
    started = time.process_time()
    optimizer.zero_grad()
    loss = loss_of(batches[step % 4])
    loss.backward()
    optimizer.step()
    spent.append(time.process_time() - started)
spent = sorted(spent[2:])
print(sys.argv[1], device, "a step: median %.1f ms, least %.1f ms of CPU time, loss" % (spent[len(spent) // 2] * 1000, spent[0] * 1000),
      loss.item().hex(), flush=True)
