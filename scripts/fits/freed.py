"""Makes tensors of growing sizes. What the allocator keeps of the smaller ones fits no later request, and is returned where it must be."""
import torch

for size in range(1000, 4000, 500):
    x = torch.empty(size << 20, dtype=torch.uint8, device="cuda")
    del x
