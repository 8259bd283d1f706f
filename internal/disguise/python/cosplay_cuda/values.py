"""What a program of compute = "shapes" gets where it asks for the values of a tensor: an unknown number, which can be printed
and calculated with, or an error."""
import functools
import importlib
import math
import warnings

from . import errors

ITEM = "A decision by the number of Tensor.item()"


class Unknown(float):
    """The number of Tensor.item(), so that a program can print its loss: nan, and an error once the program decides by it."""

    def __new__(cls):
        return float.__new__(cls, "nan")

    def __reduce__(self):
        return Unknown, ()


def refuse(self, *args):
    raise errors.no_values(ITEM)


def unknown(self, *args):
    return Unknown()


for name in ("lt", "le", "gt", "ge", "eq", "ne", "bool", "int", "float", "index", "trunc", "floor", "ceil"):
    setattr(Unknown, "__%s__" % name, refuse)
for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Unknown, "__%s__" % name, unknown)
    setattr(Unknown, "__r%s__" % name, unknown)
for name in ("neg", "pos", "abs", "round"):
    setattr(Unknown, "__%s__" % name, unknown)
Unknown.__hash__ = float.__hash__


def install(torch, shapes, devices):
    shapes.graphs = devices.graphs
    tensors(torch, shapes, devices)
    storages(torch, shapes)
    parameters(torch, shapes)
    scaler(torch)
    distributed(torch)
    numbers(torch)
    checks(torch, shapes)


def tensors(torch, shapes, devices):
    Tensor, is_hollow = torch.Tensor, shapes.is_hollow
    c_item, to_text = Tensor.item, Tensor.__repr__
    warned = []

    def item(self):
        if not is_hollow(self) or self.numel() != 1:
            return c_item(self)
        if self.is_cuda:
            devices.graphs.refuse()
        if not warned:
            warned.append(True)
            warnings.warn('nothing is computed in this session (compute = "shapes"): Tensor.item() returns nan', stacklevel=2)
        return Unknown()

    def __repr__(self, **kwargs):
        if not is_hollow(self):
            return to_text(self, **kwargs)
        twin = torch.empty_strided(self.size(), self.stride(), dtype=self.dtype, device="meta")
        place = ", device='%s'" % self.device if self.is_cuda else ""
        grad = ", grad_fn=<%s>" % type(self.grad_fn).__name__ if self.grad_fn is not None else ", requires_grad=True" if self.requires_grad else ""
        return to_text(twin).replace(", device='meta'", place)[:-1] + grad + ")"

    def without(name, told):
        original = getattr(Tensor, name)

        def method(self, *args, **kwargs):
            if is_hollow(self) and not (name == "numpy" and self.is_cuda and not kwargs.get("force")):
                raise errors.no_values(told)
            return original(self, *args, **kwargs)

        method.__name__ = name
        setattr(Tensor, name, method)

    Tensor.item, Tensor.__repr__ = item, __repr__
    for name, told in (("tolist", "Tensor.tolist()"), ("numpy", "Tensor.numpy()"), ("__reduce_ex__", "torch.save, or pickle, of a tensor"),
                       ("__dlpack__", "Tensor.__dlpack__()")):
        without(name, told)


def storages(torch, shapes):
    Storage, tags = torch.UntypedStorage, shapes.tags
    base = torch._C.StorageBase if hasattr(torch._C, "StorageBase") else Storage.__mro__[1]
    copy = base.copy_

    def is_hollow(storage):
        tag = tags.of_storage(storage)
        return tag is not None and tag.hollow

    def copy_(self, source, *args, **kwargs):
        if is_hollow(source):
            shapes.hollow_out(self)
            return self
        if is_hollow(self):
            if tags.of_storage(source) is None or tags.of_storage(source).index < 0:
                return self  # what the device gets may be floating-point numbers
            tags.of_storage(self).hollow = False
        return copy(self, source, *args, **kwargs)

    def without(name, told):
        original = getattr(base, name, None)
        if original is None:
            return

        def method(self, *args, **kwargs):
            if is_hollow(self):
                raise errors.no_values(told)
            return original(self, *args, **kwargs)

        setattr(Storage, name, method)

    Storage.copy_ = copy_
    for name in ("_share_fd_cpu_", "_share_filename_cpu_"):
        without(name, "Sharing a tensor with another process")
    for name in ("__getitem__", "_write_file"):
        without(name, "Reading a storage")


def parameters(torch, shapes):
    """The parameters of modules are hollow from the start: programs make them on the host, whose memory a large model exceeds."""
    Parameter, init = torch.nn.Parameter, torch.nn.init
    new = Parameter.__new__

    def __new__(cls, data=None, requires_grad=True):
        result = new(cls, data, requires_grad)
        if result.layout is torch.strided and not result.is_meta:
            shapes.hollow_out(shapes.tags.storage(result))
        return result

    truncate = init._no_grad_trunc_normal_

    def trunc_normal(tensor, *args, **kwargs):
        """Some versions look at the numbers that they have drawn."""
        return tensor if shapes.is_hollow(tensor) else truncate(tensor, *args, **kwargs)

    Parameter.__new__ = staticmethod(__new__)
    init._no_grad_trunc_normal_ = trunc_normal


def scaler(torch):
    """No gradient overflows, so the scaler always steps, and keeps its scale."""
    torch._amp_foreach_non_finite_check_and_unscale_ = lambda gradients, found, inverse: None
    torch._amp_update_scale_ = lambda scale, *rest: scale
    amp = torch.amp if hasattr(torch.amp, "GradScaler") else torch.cuda.amp
    amp.GradScaler._maybe_opt_step = lambda self, optimizer, state, *args, **kwargs: optimizer.step(*args, **kwargs)
    amp.GradScaler.get_scale = lambda self: self._init_scale if self._enabled else 1.0
    amp.GradScaler._get_growth_tracker = lambda self: self._init_growth_tracker if self._enabled else 0


def distributed(torch):
    import torch.distributed as dist

    if not dist.is_available():
        return
    import torch.distributed.distributed_c10d as c10d

    def init_process_group(*args, **kwargs):
        raise errors.no_values("torch.distributed.init_process_group")

    dist.init_process_group = c10d.init_process_group = init_process_group


def numbers(torch):
    """An unknown number counts as finite, so that a program does not stop because of its loss. A size must be known."""
    for name, answer in (("isnan", False), ("isinf", False), ("isfinite", True)):
        setattr(math, name, of_known(getattr(math, name), answer))
    for name in ("arange", "range", "linspace", "logspace"):
        original = getattr(torch, name)

        @functools.wraps(original)
        def make(*args, original=original, **kwargs):
            if any(isinstance(value, Unknown) for value in list(args) + list(kwargs.values())):
                refuse(None)
            return original(*args, **kwargs)

        setattr(torch, name, make)


def of_known(original, answer):
    @functools.wraps(original)
    def ask(number):
        return answer if isinstance(number, Unknown) else original(number)

    return ask


def checks(torch, shapes):
    """Functions that read values only to check them, or to leave some out of a mean."""
    functional = torch.nn.functional
    one_hot, cross_entropy = functional.one_hot, functional.cross_entropy
    torch.distributions.Distribution.set_default_validate_args(False)

    @functools.wraps(one_hot)
    def one_hot_of_shapes(tensor, num_classes=-1):
        if not shapes.is_hollow(tensor):
            return one_hot(tensor, num_classes)
        if num_classes <= 0:
            raise errors.no_values("torch.nn.functional.one_hot without num_classes")
        return torch.zeros(tuple(tensor.shape) + (num_classes,), dtype=tensor.dtype, device=tensor.device)

    @functools.wraps(cross_entropy)
    def cross_entropy_of_shapes(*args, **kwargs):
        before, shapes.all_selected = shapes.all_selected, True
        try:
            return cross_entropy(*args, **kwargs)
        finally:
            shapes.all_selected = before

    asgd = importlib.import_module("torch.optim.asgd")  # which torch.optim hides
    value_of = getattr(asgd, "_get_value", float)
    # The number of a step only scales the next one.
    asgd._get_value = lambda step: 1.0 if isinstance(step, torch.Tensor) and shapes.is_hollow(step) else value_of(step)
    functional.one_hot, functional.cross_entropy = one_hot_of_shapes, cross_entropy_of_shapes
