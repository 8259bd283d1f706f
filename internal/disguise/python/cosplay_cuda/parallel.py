"""nn.DataParallel and DistributedDataParallel."""
import functools

from . import groups
from .storages import CPU


def install(torch, devices):
    copies(torch, devices)
    distributed(torch, devices)


def copies(torch, devices):
    """The copies between devices that nn.DataParallel makes."""

    def place(tensor, index):
        return tensor if devices.of(tensor) == index else devices.move(tensor, index)

    def broadcast(tensor, targets):
        return [place(tensor, index) for index in targets]

    def broadcast_coalesced(tensors, targets, size):
        return [[place(tensor, index) for tensor in tensors] for index in targets]

    def broadcast_out(tensor, outs):
        for out in outs:
            out.copy_(tensor)
        return outs

    def scatter(tensor, targets, sizes, dim, streams):
        parts = tensor.split(sizes, dim) if sizes else tensor.chunk(len(targets), dim)
        return [place(part.contiguous(), index) for part, index in zip(parts, targets)]

    def scatter_out(tensor, outs, dim, streams):
        for out, part in zip(outs, tensor.split([out.size(dim) for out in outs], dim)):
            out.copy_(part)
        return outs

    def gather(tensors, dim, target):
        index = CPU if target == -1 else devices.index("cuda") if target is None else target
        return torch.cat([place(tensor, index) for tensor in tensors], dim)

    def gather_out(tensors, out, dim):
        return out.copy_(gather(tensors, dim, devices.of(out)))

    nccl = torch.cuda.nccl
    nccl.is_available = functools.wraps(nccl.is_available)(lambda tensors: False)  # without its warning
    for name, function in (("broadcast", broadcast), ("broadcast_coalesced", broadcast_coalesced), ("broadcast_out", broadcast_out),
                           ("scatter", scatter), ("scatter_out", scatter_out), ("gather", gather), ("gather_out", gather_out)):
        setattr(torch._C, "_" + name, function)


def distributed(torch, devices):
    import torch.distributed as dist

    if not dist.is_available():
        return
    groups.Groups(torch, devices).install()
    buckets(torch, devices)


def buckets(torch, devices):
    """The reducer of DistributedDataParallel allocates its buckets in C++: they are on the device of the module."""
    try:
        from torch.nn.parallel import DistributedDataParallel as Parallel
    except ImportError:
        return

    def on_device(function):
        @functools.wraps(function)
        def run(self, *args, **kwargs):
            local = devices.local
            before = local.ambient
            module = getattr(self, "module", None) or (args[0] if args else kwargs.get("module"))
            first = next(module.parameters(), None) if isinstance(module, torch.nn.Module) else None
            if first is not None:
                local.ambient = devices.of(first)
            try:
                return function(self, *args, **kwargs)
            finally:
                local.ambient = before

        return run

    Parallel.__init__, Parallel.forward = on_device(Parallel.__init__), on_device(Parallel.forward)
