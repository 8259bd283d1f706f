"""Runs a network whose operations and copies are known, and prints what the report must say, as a line of JSON."""
import json

import torch

BATCH, SIDE, CLASSES = 4, 8, 10


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 6, 3, padding=1)
        self.up = torch.nn.ConvTranspose2d(6, 5, 2, stride=2)
        self.mix = torch.nn.Linear(2 * SIDE, 7)
        self.out = torch.nn.Linear(5 * 2 * SIDE * 7, CLASSES)

    def forward(self, x):
        x = self.up(torch.relu(self.conv(x)))
        x = torch.relu(self.mix(x))
        scores = torch.bmm(x.flatten(0, 1), x.flatten(0, 1).transpose(1, 2))
        return self.out((x + scores.mean()).flatten(1))


def closed_form():
    conv = 2 * BATCH * SIDE * SIDE * 6 * 3 * 9
    up = 2 * BATCH * SIDE * SIDE * 6 * 5 * 4
    mix = 2 * BATCH * 5 * 2 * SIDE * 2 * SIDE * 7
    bmm = 2 * BATCH * 5 * 2 * SIDE * 7 * 2 * SIDE
    out = 2 * BATCH * 5 * 2 * SIDE * 7 * CLASSES
    forward = conv + up + mix + bmm + out
    # Backward, each has the gradients of both operands, but for the network's input.
    return forward + 2 * forward - conv


model = Network().cuda()
x = torch.randn(BATCH, 3, SIDE, SIDE)
y = torch.arange(BATCH)
loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
loss.backward()
loss.item()
reader = torch.nn.GRU(6, 5, 2, bidirectional=True).cuda()
steps = torch.ones(9, BATCH, 6)
reader(steps.cuda())[0].sum().backward()
recurrent = 3 * 2 * 9 * BATCH * sum(p.numel() for p in reader.parameters() if p.dim() == 2)  # forward, and twice as much backward
parameters = sum(p.numel() for p in (*model.parameters(), *reader.parameters())) + steps.numel()
gradient = next(model.parameters()).grad.cpu()
if torch.cuda.device_count() > 1:
    x.to("cuda:0").to("cuda:1")
between = 4 * x.numel() * (torch.cuda.device_count() > 1)
print(json.dumps({"flops": closed_form() + recurrent, "to_device": 4 * parameters + 4 * x.numel() + 8 * BATCH + between,
                  "to_host": 4 + 4 * gradient.numel(), "between": between}))
