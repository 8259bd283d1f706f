"""nn.DataParallel and DistributedDataParallel."""
import functools

from . import comm, groups


def install(torch, devices):
    comm.install(torch, devices)
    distributed(torch, devices)


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
