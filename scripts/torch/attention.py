"""scaled_dot_product_attention with its masks, dropout, groups and types, by function and modules, with gradients, in checkpoints and twice."""
import torch
from common import device, show
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

attend = getattr(F, "scaled_dot_product_attention", None)


def operands(heads, length, depth, dtype=torch.float32):
    x = torch.rand(2, length, 3 * heads * depth, device=device).to(dtype)
    return [part.reshape(2, length, heads, depth).transpose(1, 2).detach().requires_grad_() for part in x.chunk(3, -1)]


def case(name, parts, again=False, **options):
    y = attend(*parts, **options)
    for _ in range(1 + again):
        y.float().square().sum().backward(retain_graph=again)
    show(name, y.double().sum())
    show(name + " gradients", sum(part.grad.double().sum() for part in parts))
    with torch.no_grad():
        show(name + " alone", attend(*parts, **options).double().sum())


lower = torch.ones(48, 48, dtype=torch.bool, device=device).tril()
for dtype in (torch.float32, torch.bfloat16, torch.float64) if attend else ():
    kind = str(dtype)
    case("plain " + kind, operands(4, 48, 32, dtype))
    case("causal " + kind, operands(4, 48, 32, dtype), is_causal=True)
    case("dropout " + kind, operands(4, 48, 32, dtype), dropout_p=0.2)
    case("mask of bool " + kind, operands(4, 48, 32, dtype), attn_mask=lower)
    case("mask " + kind, operands(4, 48, 20, dtype), attn_mask=torch.rand(2, 1, 48, 48, device=device).to(dtype), dropout_p=0.1)
    case("twice " + kind, operands(2, 30, 10, dtype), again=True, dropout_p=0.1)
if attend:
    bias = torch.rand(30, 30, device=device, requires_grad=True)
    attend(*operands(2, 30, 16), attn_mask=bias).square().sum().backward()
    show("bias", bias.grad.double().sum())
    many, few = torch.rand(1, 8, 30, 16, device=device), torch.rand(1, 2, 30, 16, device=device)
    if "enable_gqa" in str(torch.ops.aten.scaled_dot_product_attention.default._schema):
        show("groups", attend(many, few, few, enable_gqa=True).double().sum())
    show("vmap", torch.func.vmap(lambda x: attend(x, x, x))(many[None].repeat(2, 1, 1, 1, 1)).double().sum())

module = torch.nn.MultiheadAttention(64, 4, dropout=0.1, batch_first=True, device=device)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, device=device)
x = torch.rand(2, 40, 64, device=device).requires_grad_()
runs = {"module": lambda: module(x, x, x, need_weights=False)[0], "layer": lambda: layer(x),
        "checkpoint": lambda: checkpoint(layer, x, use_reentrant=False), "reentrant": lambda: checkpoint(layer, x, use_reentrant=True)}
for name, run in runs.items():
    x.grad = None
    y = run()
    y.square().sum().backward()
    show(name, y.double().sum())
    show(name + " gradients", x.grad.double().sum())
