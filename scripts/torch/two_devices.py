"""Tensors of the host beside tensors of a device: what PyTorch refuses on a GPU, and what it takes."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

SAME = "Expected all tensors to be on the same device"
failed = []


def cuda(*size):
    return torch.ones(*size, device="cuda")


def refused(name, function, text=SAME):
    try:
        failed.append("%s is not refused: %s" % (name, function()))
    except RuntimeError as error:
        if text not in str(error):
            failed.append("%s: %s" % (name, error))


def on(name, function, device="cuda"):
    try:
        result = function()
        if result.device.type != device:
            failed.append("%s is on %s" % (name, result.device))
    except Exception as error:
        failed.append("%s: %s: %s" % (name, type(error).__name__, error))


def number():
    return torch.tensor(1.0)


def sum_on_the_host():
    total = number()
    total += cuda(1).sum()
    return total


def made_by(function, *args):
    """What a function makes of the host stays there when it meets a tensor of a device."""
    made = function(*args)
    try:
        made * cuda(1)
    except RuntimeError as error:
        assert SAME in str(error), error
        return made
    raise AssertionError("it is taken with a tensor of a device")


def gradient(given, function=lambda x: x * 2):
    x = cuda(2).requires_grad_()
    function(x).backward(given)
    return x.grad


def packed(lengths):
    return nn.utils.rnn.pack_padded_sequence(cuda(2, 3, 1), lengths, batch_first=True).data


refused("a number of the host that is changed", sum_on_the_host)
refused("a number of the host as out=", lambda: torch.add(cuda(1).sum(), cuda(1).sum(), out=number()))
refused("stack", lambda: torch.stack([cuda(1).sum(), number()]))
refused("stack in the other order", lambda: torch.stack([number(), cuda(1).sum()]))
refused("a class of the host", lambda: F.cross_entropy(cuda(3), torch.tensor(1)))
refused("an index of the host", lambda: nn.Embedding(3, 2).cuda()(torch.tensor(1)))
refused("index_select", lambda: cuda(3).index_select(0, torch.tensor(1)))
refused("equal", lambda: torch.equal(cuda(1).sum(), number()))
refused("backward with a gradient of the host", lambda: gradient(torch.ones(2)), "invalid gradient at index 0 - expected device cuda:0 but got cpu")
refused("grad with a gradient of the host", lambda: torch.autograd.grad([cuda(2).requires_grad_() * 2], [cuda(2)], [torch.ones(2)]), "invalid gradient at index 0")
refused("lengths of a device", lambda: packed(torch.tensor([3, 2]).cuda()), "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor")

images = torch.ones(1, 1, 8, 8)
refused("a convolution of the host's images", lambda: nn.Conv2d(1, 1, 3).cuda()(images),
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a MKLDNN tensor and weight is a dense tensor")
refused("a convolution with weights of the host", lambda: nn.Conv2d(1, 1, 3)(images.cuda()),
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same")
refused("a convolution with a bias of the host", lambda: F.conv1d(cuda(1, 1, 8), cuda(1, 1, 3), torch.ones(1)),
        "Input type (torch.cuda.FloatTensor) and bias type (torch.FloatTensor) should be the same")
refused("a transposed convolution", lambda: nn.ConvTranspose2d(1, 1, 3).cuda()(images), "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor)")

for name, function, *arguments in (
        ("FloatTensor", torch.FloatTensor, 2, 3), ("FloatTensor of numbers", torch.FloatTensor, [1, 2]), ("Tensor", torch.Tensor, 3),
        ("one_hot", F.one_hot, torch.tensor([0, 1]), 3), ("combinations", torch.combinations, torch.arange(3)),
        ("the state of a generator", torch.default_generator.get_state)):
    on(name, lambda: made_by(function, *arguments), "cpu")

on("a product with a number", lambda: cuda(3) * number())
on("a product with a number in place", lambda: cuda(3).mul_(number()))
on("where", lambda: torch.where(cuda(3) > 0, number(), cuda(3)))
on("masked_fill", lambda: cuda(3).masked_fill(cuda(3) > 0, number()))
on("clamp", lambda: cuda(3).clamp(min=number()))
on("one_hot of a device", lambda: F.one_hot(torch.tensor([0, 1]).cuda(), 3) * cuda(2, 3))
on("combinations of a device", lambda: torch.combinations(cuda(3)))
on("quantile", lambda: torch.quantile(cuda(3), 0.5))
on("index by a list", lambda: cuda(3)[[0, 1]])
on("lengths of the host", lambda: packed(torch.tensor([3, 2])))
on("a gradient of the device", lambda: gradient(cuda(2)))
on("a number as the gradient", lambda: gradient(number(), torch.sum))
# Memory that PyTorch makes in a backward pass is on the device of its operands, wherever the loss is.
on("cumprod with its loss on the host", lambda: gradient(None, lambda x: x.cumprod(0).cpu().prod()))
on("trace with its loss on the host", lambda: gradient(None, lambda x: (x * cuda(2, 2)).trace().cpu()))
seen = []


def hook(gradient):
    seen.extend([torch.FloatTensor(2), F.one_hot(torch.tensor([0, 1]), 3), F.one_hot(torch.tensor([0, 1]).cuda(), 3)])


def hooked(x):
    y = x * 2
    y.register_hook(hook)
    return y.sum()


on("a backward pass with a hook", lambda: gradient(None, hooked))
if [made.device.type for made in seen] != ["cpu", "cpu", "cuda"]:
    failed.append("a hook makes tensors on %s" % [made.device for made in seen])

for text in failed:
    print(text)
print("tensors of the host and of a device: %d with another result" % len(failed))
sys.exit(1 if failed else 0)
