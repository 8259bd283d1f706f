"""Trains a small network; --batch decides how much memory that takes. The code is that for a GPU, unchanged."""
import argparse

import torch

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--batch", type=int, default=256, help="images in a step")
options.add_argument("--steps", type=int, default=3)
options = options.parse_args()

device = torch.device("cuda")
print(torch.cuda.get_device_name(), "with", torch.cuda.get_device_properties(0).total_memory >> 20, "MiB")
torch.manual_seed(1)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(32 * 8 * 8, 10),
).to(device)
optimizer = torch.optim.Adam(model.parameters())
for step in range(options.steps):
    images = torch.randn(options.batch, 3, 32, 32, device=device)
    labels = torch.randint(10, (options.batch,), device=device)
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss %.4f" % loss.item())
print("peak", torch.cuda.max_memory_reserved() >> 20, "MiB")
