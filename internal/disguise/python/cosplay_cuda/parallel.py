"""nn.DataParallel, and process groups: "nccl" is carried by gloo between the processes of a host."""
import functools

from . import errors
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

    for name, function in (("broadcast", broadcast), ("broadcast_coalesced", broadcast_coalesced), ("broadcast_out", broadcast_out),
                           ("scatter", scatter), ("scatter_out", scatter_out), ("gather", gather), ("gather_out", gather_out)):
        setattr(torch._C, "_" + name, function)


def distributed(torch, devices):
    import torch.distributed as dist

    if not dist.is_available():
        return
    import torch.distributed.distributed_c10d as c10d

    names = {}  # of process groups, as the program gave them
    start, new, of_group = c10d.init_process_group, c10d.new_group, c10d.get_backend

    def gloo(backend):
        """What carries a backend: "cpu:gloo,cuda:nccl" is gloo for both."""
        if backend is None:
            return "gloo"
        return "gloo" if "nccl" in str(backend).lower() else backend

    def shown(backend):
        text = str(backend).lower() if backend else "nccl"
        return "nccl" if "nccl" in text else text

    @functools.wraps(start)
    def init_process_group(backend=None, *args, **kwargs):
        kwargs.pop("device_id", None)
        kwargs.pop("pg_options", None) if "nccl" in shown(backend) else None
        start(gloo(backend), *args, **kwargs)
        names[None] = shown(backend)
        devices.counters.rank = dist.get_rank()

    @functools.wraps(new)
    def new_group(ranks=None, timeout=None, backend=None, *args, **kwargs):
        if timeout is not None:
            kwargs["timeout"] = timeout
        group = new(ranks, *args, backend=gloo(backend or names.get(None)), **kwargs)
        names[id(group)] = shown(backend or names.get(None))
        return group

    @functools.wraps(of_group)
    def get_backend(group=None):
        name = of_group(group)
        return names.get(None if group is None or group is dist.group.WORLD else id(group), name) if name == "gloo" else name

    def averages(function, argument):
        """A collective with ReduceOp.AVG, which gloo lacks: the sum, divided."""

        @functools.wraps(function)
        def run(*args, **kwargs):
            args = list(args)
            op = kwargs.get("op", args[argument] if len(args) > argument else None)
            if op is None or op != getattr(dist.ReduceOp, "AVG", object()):
                return function(*args, **kwargs)
            if kwargs.get("async_op"):
                raise errors.unsupported("ReduceOp.AVG with async_op=True", "use ReduceOp.SUM and divide")
            if "op" in kwargs:
                kwargs["op"] = dist.ReduceOp.SUM
            else:
                args[argument] = dist.ReduceOp.SUM
            group = kwargs.get("group")
            result = function(*args, **kwargs)
            output = kwargs.get("tensor", kwargs.get("output", args[0] if args else None))
            output.div_(dist.get_world_size(group))
            return result

        return run

    for name, function in (("init_process_group", init_process_group), ("new_group", new_group), ("get_backend", get_backend),
                           ("all_reduce", averages(c10d.all_reduce, 1))):
        setattr(c10d, name, function)
        if hasattr(dist, name):
            setattr(dist, name, function)
    dist.is_nccl_available = lambda: True  # for programs; PyTorch's own code asks its module, which has no class of NCCL
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
