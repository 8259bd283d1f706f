"""Generates text in half precision with a cache of keys and values that grows."""
import torch
from torch import nn
from torch.nn import functional

layers, heads, width = 24, 16, 2048
with torch.device("cuda") if hasattr(torch.device, "__enter__") else torch.no_grad():
    weights = [[nn.Linear(width, size, bias=False).half().cuda() for size in (3 * width, width, 4 * width)] + [nn.Linear(4 * width, width, bias=False).half().cuda()]
               for _ in range(layers)]
cache = [None] * layers
with torch.inference_mode():
    x = torch.randn(8, 512, width, device="cuda").half()
    for token in range(24):
        for at, (qkv, out, up, down) in enumerate(weights):
            q, k, v = (part.unflatten(-1, (heads, width // heads)).transpose(1, 2) for part in qkv(x).chunk(3, dim=-1))
            if cache[at] is not None:
                k, v = torch.cat((cache[at][0], k), dim=2), torch.cat((cache[at][1], v), dim=2)
            cache[at] = k, v
            scores = (q @ k.transpose(-1, -2)).div(11.3).softmax(-1)
            x = x + out((scores @ v).transpose(1, 2).flatten(-2))
            x = x + down(functional.gelu(up(x)))
        x = x[:, -1:]
