"""Traced modules, on another input than the one that they were traced with."""
import warnings

import torch

from common import device, show

warnings.simplefilter("ignore")


class Filled(torch.nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        y.copy_(x)
        return y * torch.tensor([2.0] * x.shape[-1], device=device)


MODULES = {
    "convolution": (torch.nn.Conv2d(3, 2, 3), (1, 3, 8, 8), (2, 3, 9, 9)),
    "transposed": (torch.nn.ConvTranspose1d(3, 2, 3), (1, 3, 8), (2, 3, 9)),
    "linear": (torch.nn.Linear(8, 2), (3, 8), (5, 8)),
    "lstm": (torch.nn.LSTM(8, 5), (4, 2, 8), (4, 2, 8)),
    "gru": (torch.nn.GRU(8, 5), (4, 2, 8), (4, 2, 8)),
    "attention": (torch.nn.MultiheadAttention(8, 2), (4, 2, 8), (4, 2, 8)),
    "filled": (Filled(), (3, 4), (3, 4)),
}
for name, (module, first, second) in MODULES.items():
    module = module.to(device).eval()
    copies = 3 if name == "attention" else 1
    traced = torch.jit.trace(module, (torch.ones(first, device=device),) * copies)
    for number, x in enumerate((torch.randn(first), torch.randn(second))):
        result = traced(*(x.to(device),) * copies)
        result = result[0] if isinstance(result, tuple) else result
        assert result.device.type == device
        show("%s %d" % (name, number), (result * torch.arange(1.0, result.numel() + 1, device=device).view_as(result)).sum())
