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

steps = int(sys.argv[2])
for step in range(steps + 2):
    if step == 2:
        started = time.process_time()
    optimizer.zero_grad()
    loss = loss_of(batches[step % 4])
    loss.backward()
    optimizer.step()
spent = time.process_time() - started
print(sys.argv[1], device, "%.1f ms" % (spent / steps * 1000), float(loss).hex(), flush=True)
