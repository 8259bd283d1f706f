"""Process groups: "nccl" is carried by gloo between the processes of a host."""
import contextlib
import datetime
import functools
import sys
import threading

from . import errors

# The functions that exchange tensors, with the place of their operation, if they have one.
EXCHANGES = {
    "all_reduce": 1, "reduce": 2, "reduce_scatter": 2, "reduce_scatter_tensor": 2, "_reduce_scatter_base": 2, "all_reduce_coalesced": 1,
    "broadcast": None, "all_gather": None, "all_gather_into_tensor": None, "_all_gather_base": None, "all_gather_coalesced": None,
    "gather": None, "scatter": None, "all_to_all": None, "all_to_all_single": None, "send": None, "recv": None, "isend": None, "irecv": None,
    "barrier": None, "all_gather_object": None, "gather_object": None, "scatter_object_list": None, "broadcast_object_list": None,
    "send_object_list": None, "recv_object_list": None,
}
# What gloo says of operations and of dtypes that it lacks.
LACKS = ("does not support", "no support for", "Invalid scalar type", "not implemented", "Unsupported")


class Running(threading.local):
    inside = False  # PyTorch's own code calls these functions too, with tensors that it chose


class Groups:
    def __init__(self, torch, devices):
        import torch.distributed.distributed_c10d as c10d

        self.torch, self.devices, self.c10d = torch, devices, c10d
        self.names = {}  # of process groups, as the program gave them; None is the default group's
        self.running = Running()
        self.kept = []  # old versions wait for a group's threads with Python's lock, which these need to release tensors

    def install(self):
        dist, c10d = self.torch.distributed, self.c10d
        for name, function in self.starts():
            self.replace(name, function)
        for name, operation in EXCHANGES.items():
            original = getattr(c10d, name, None)
            if original is not None:
                self.replace(name, self.exchange(name, original, operation))
        self.replace("batch_isend_irecv", self.one_by_one(c10d.batch_isend_irecv))
        dist.is_nccl_available = lambda: True  # for programs; PyTorch's own code asks its module
        if hasattr(c10d, "ProcessGroupGloo"):
            dist.ProcessGroupNCCL = c10d.ProcessGroupNCCL = group_class(c10d.ProcessGroupGloo)
        store_without_libuv(dist)
        symmetric = getattr(self.torch._C._distributed_c10d, "_SymmetricMemory", None)
        if hasattr(symmetric, "has_multicast_support"):
            symmetric.has_multicast_support = staticmethod(lambda *args: False)  # no GPU here has NVLink

    def replace(self, name, function):
        replace(getattr(self.c10d, name), name, function)

    def starts(self):
        """The functions that make groups and name them."""
        dist, names = self.torch.distributed, self.names
        start, new, of_group = self.c10d.init_process_group, self.c10d.new_group, self.c10d.get_backend

        @functools.wraps(start)
        def init_process_group(backend=None, *args, **kwargs):
            kwargs.pop("device_id", None)
            if "nccl" in shown(backend):
                kwargs.pop("pg_options", None)
            with self.own_keys():
                start(gloo(backend), *args, **kwargs)
            names[None] = shown(backend)
            self.kept.append(self.c10d._get_default_group())
            self.devices.counters.rank = dist.get_rank()

        @functools.wraps(new)
        def new_group(ranks=None, timeout=None, backend=None, *args, **kwargs):
            if timeout is not None:
                kwargs["timeout"] = timeout
            kwargs.pop("device_id", None)
            if "nccl" in shown(backend or names.get(None)):
                kwargs.pop("pg_options", None)
            group = new(ranks, *args, backend=gloo(backend or names.get(None)), **kwargs)
            names[id(group)] = shown(backend or names.get(None))
            self.kept.append(group)
            return group

        @functools.wraps(of_group)
        def get_backend(group=None):
            name = of_group(group)
            if name != "gloo":
                return name
            return "nccl" if "nccl" in self.name(group) else self.name(group)

        return ("init_process_group", init_process_group), ("new_group", new_group), ("get_backend", get_backend)

    @contextlib.contextmanager
    def own_keys(self):
        """A group that is kept keeps its store, and PyTorch gives one of the same port to the next default group: it needs other keys there."""
        PrefixStore, number = self.c10d.PrefixStore, len(self.kept)
        if number:
            self.c10d.PrefixStore = lambda prefix, store: PrefixStore("%s/%d" % (prefix, number), store)
        try:
            yield
        finally:
            self.c10d.PrefixStore = PrefixStore

    def name(self, group):
        """What the program called the backend of a group."""
        world = self.torch.distributed.group.WORLD
        return self.names.get(None if group is None or group is world else id(group), "gloo")

    def exchange(self, name, function, place):
        """A function that exchanges tensors. Only NCCL's own rules are checked here; all else is gloo's."""
        running, SUM, AVG = self.running, self.torch.distributed.ReduceOp.SUM, getattr(self.torch.distributed.ReduceOp, "AVG", None)

        @functools.wraps(function)
        def run(*args, **kwargs):
            if running.inside:
                return function(*args, **kwargs)
            if name == "barrier" and isinstance(kwargs.get("device_ids"), list):
                kwargs = dict(kwargs, device_ids=None)  # gloo's barrier is on the host
            group = kwargs.get("group") or next((arg for arg in args if isinstance(arg, self.torch._C._distributed_c10d.ProcessGroup)), None)
            if self.name(group) == "nccl":
                self.refuse_host(tensors_in(self.torch, args, kwargs))
            if name == "all_gather" and not any(tensor.numel() for tensor in tensors_in(self.torch, args, kwargs)):
                return self.gather_nothing(*args, **kwargs)
            operation = None if place is None else kwargs.get("op", args[place] if len(args) > place else None)
            average = operation is not None and AVG is not None and operation == AVG
            if average:
                args, kwargs = args[:place] + (SUM,) + args[place + 1:] if len(args) > place else args, dict(kwargs)
                if "op" in kwargs:
                    kwargs["op"] = SUM
            running.inside = True
            try:
                result = function(*args, **kwargs)
                if average:
                    if result is not None:
                        result.wait()  # that of async_op=True
                    self.divide(args, kwargs, group)
                return result
            except RuntimeError as error:
                raise self.lacks(name, args, kwargs, error)
            finally:
                running.inside = False

        return run

    def gather_nothing(self, tensor_list, tensor, group=None, async_op=False):
        """The gloo of PyTorch 1.13 ends the process where it gathers tensors without elements; a sum of them does as well."""
        return self.c10d.all_reduce(tensor, group=group, async_op=async_op)

    def one_by_one(self, function):
        @functools.wraps(function)
        def batch_isend_irecv(operations):
            """PyTorch asks the backend of CUDA to start all at once, which gloo cannot."""
            self.c10d._check_p2p_op_list(operations)
            works = [operation.op(operation.tensor, operation.peer, operation.group, operation.tag) for operation in operations]
            return [work for work in works if work is not None]

        return batch_isend_irecv

    def divide(self, args, kwargs, group):
        output = next((kwargs[name] for name in ("tensor", "output", "tensors") if name in kwargs), args[0] if args else None)
        for tensor in output if isinstance(output, (list, tuple)) else (output,):
            whole = not (tensor.is_floating_point() or tensor.is_complex())
            tensor.div_(self.torch.distributed.get_world_size(group), rounding_mode="trunc" if whole else None)

    def refuse_host(self, tensors):
        """NCCL takes no tensor of the host. A group of "cpu:gloo,cuda:nccl" does."""
        for tensor in tensors:
            if self.devices.of(tensor) < 0:
                if errors.version(self.torch) < (2, 0):
                    raise RuntimeError("Tensors must be CUDA and dense")
                raise RuntimeError("No backend type associated with device type cpu")

    def lacks(self, name, args, kwargs, error):
        """The error of an operation that gloo lacks in this version names the operation and the dtype."""
        if not any(text in str(error) for text in LACKS):
            return error
        dtypes = sorted({str(tensor.dtype) for tensor in tensors_in(self.torch, args, kwargs)})
        what = "torch.distributed.%s%s" % (name, " of " + ", ".join(dtypes) if dtypes else "")
        return errors.unsupported(what, "gloo carries its process groups, and that of PyTorch %s lacks this (%s)" % (
            self.torch.__version__, str(error).splitlines()[0]))


def group_class(base):
    """ProcessGroupNCCL, for programs that make one or its options themselves."""

    class ProcessGroupNCCL(base):
        class Options(object):
            def __init__(self, is_high_priority_stream=False):
                self.is_high_priority_stream, self._timeout = is_high_priority_stream, datetime.timedelta(minutes=30)

        def __init__(self, store, rank, size, options=None, timeout=None):
            base.__init__(self, store, rank, size, timeout or getattr(options, "_timeout", options) or self.Options()._timeout)

    ProcessGroupNCCL.__qualname__, ProcessGroupNCCL.__module__ = "ProcessGroupNCCL", "torch.distributed.distributed_c10d"
    return ProcessGroupNCCL


def gloo(backend):
    """What carries a backend: "cpu:gloo,cuda:nccl" is gloo for both."""
    if backend is None:
        return "gloo"
    return "gloo" if "nccl" in str(backend).lower() else backend


def shown(backend):
    """No backend is, from PyTorch 2.0 on, that of each device."""
    return str(backend).lower() if backend else "cpu:gloo,cuda:nccl"


def replace(original, name, replacement):
    """Other modules of PyTorch have imported it by name."""
    for module in [module for at, module in sys.modules.items() if at.startswith("torch.")]:
        if getattr(module, "__dict__", {}).get(name) is original:
            setattr(module, name, replacement)


def tensors_in(torch, args, kwargs):
    for value in tuple(args) + tuple(kwargs.values()):
        for part in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(part, torch.Tensor):
                yield part
            elif isinstance(part, (list, tuple)):
                for tensor in part:
                    if isinstance(tensor, torch.Tensor):
                        yield tensor


def store_without_libuv(dist):
    """torchrun asks for a store over libuv, whatever the build has; Debian's has none."""
    original = getattr(dist, "TCPStore", None)
    if original is None:
        return

    class TCPStore(original):
        def __init__(self, *args, **kwargs):
            try:
                original.__init__(self, *args, **kwargs)
            except RuntimeError as error:
                if "libuv" not in str(error):
                    raise
                kwargs["use_libuv"] = False
                original.__init__(self, *args, **kwargs)

    replace(original, "TCPStore", TCPStore)
