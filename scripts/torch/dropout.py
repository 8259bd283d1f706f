"""Dropout by all of its callers, with gradients: functions, modules, recurrent networks, attention, other types, torch.func, TorchScript."""
import torch
from common import device, show
from torch.nn import functional as F

x = torch.rand(40, 64, device=device).requires_grad_()


def step(name, y, *parameters):
    """Shows a result and the gradients of the input and of parameters."""
    x.grad = None
    y.float().square().sum().backward()
    show(name, y.double().sum())
    show(name + " gradients", sum(p.grad.double().sum() for p in (x,) + parameters))


for p in (0.1, 0.5, 1.0, 0.0):
    step("probability %s" % p, F.dropout(x, p))
step("strided", F.dropout(x.t()[:, ::2], 0.3))
step("in place", F.dropout(x * 2, 0.3, inplace=True))
step("alpha", F.alpha_dropout(x, 0.3, training=True))
step("feature", F.dropout2d(x.reshape(4, 10, 8, 8), 0.3))
for dtype in (torch.bfloat16, torch.float64):
    step(str(dtype), F.dropout(x.to(dtype), 0.3))
with torch.no_grad():
    show("no gradients", F.dropout(x, 0.3).double().sum())
with torch.inference_mode():
    show("inference", F.dropout(x, 0.3).double().sum())

attention = torch.nn.MultiheadAttention(64, 4, dropout=0.3, batch_first=True, device=device)
parts = x.reshape(4, 10, 64)
step("attention", attention(parts, parts, parts, need_weights=False)[0], attention.in_proj_weight)
lstm = torch.nn.LSTM(64, 16, 2, dropout=0.5, device=device)
step("lstm", lstm(parts)[0], lstm.weight_ih_l1)

gradient = torch.autograd.grad(F.dropout(x.exp(), 0.3).sum(), x, create_graph=True)[0]
step("second order", gradient * 1)
if hasattr(torch, "func"):
    step("vmap", torch.func.vmap(lambda row: F.dropout(row, 0.3), randomness="different")(x))
    show("grad", torch.func.grad(lambda row: F.dropout(row, 0.3).sum())(x.detach()).double().sum())
step("script", torch.jit.script(torch.nn.Sequential(torch.nn.Dropout(0.3), torch.nn.ReLU()))(x))
