"""Halves its batch until it fits, and so runs on GPUs with less memory than its peak."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4096, 16384), nn.GELU(), nn.Linear(16384, 4096)).cuda()
optimizer = torch.optim.Adam(model.parameters())
batch = 65536
while batch:
    try:
        x = torch.randn(batch, 4096, device="cuda")
        model(x).pow(2).mean().backward()
        optimizer.step()
        break
    except torch.cuda.OutOfMemoryError:
        x = None
        optimizer.zero_grad(set_to_none=True)
        batch //= 2
        print("batch", batch)
assert batch, "the model alone does not fit"
