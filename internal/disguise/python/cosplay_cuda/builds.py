"""What CUDA builds of PyTorch have, and pip installs one, and CPU builds lack: NVIDIA's runtime and libraries, functions of torch._C
below those that are replaced, and classes in C."""
import functools
import os
import re
import sys
import types

from . import errors

VISIBLE = "CUDA_VISIBLE_DEVICES"
# Functions of torch._C that only a CUDA build has. Those that need no GPU keep what they do.
OF_CUDA = re.compile("_cuda_|_nccl_|_gds_|_construct_CUDA_")
KEPT = frozenset(("_cuda_customAllocator", "_cuda_get_conv_benchmark_empty_cache", "_cuda_getArchFlags", "_cuda_getCompiledVersion",
                  "_nccl_version", "_nccl_version_suffix"))


def hide_devices(torch):
    """NVIDIA's runtime accepts no driver but NVIDIA's, and PyTorch's C++ code asks it for devices in a first backward pass and
    elsewhere. So it starts here, while no device is visible: it then has none for the rest of the process, and says nothing."""
    count = getattr(getattr(torch, "_C", None), "_cuda_getDeviceCount", None)
    if count is None:
        return
    visible = os.environ.get(VISIBLE)
    os.putenv(VISIBLE, "")  # not os.environ, which other threads read
    try:
        count()
    finally:
        if visible is None:
            os.unsetenv(VISIBLE)
        else:
            os.putenv(VISIBLE, visible)


def libraries(torch):
    """Which library of NVIDIA's a program prefers: a CPU build refuses those that it was built without. None computes here."""
    for kind in ("linalg", "blas"):
        if hasattr(torch._C, "_set_%s_preferred_backend" % kind):
            remember(torch, "_set_%s_preferred_backend" % kind, "_get_%s_preferred_backend" % kind)


def remember(torch, setter, getter):
    choose, chosen, refused = getattr(torch._C, setter), getattr(torch._C, getter), []

    def prefer(library):
        del refused[:]
        try:
            choose(library)
        except RuntimeError:
            refused.append(library)

    setattr(torch._C, setter, prefer)
    setattr(torch._C, getter, lambda: refused[0] if refused else chosen())


def without_devices(torch):
    """For a CUDA build that is not prepared: its Python code asks the session's NVML for devices."""
    if hasattr(getattr(torch, "_C", None), "_cuda_getDeviceCount"):
        torch.cuda.device_count = lambda: 0


def refuse_rest(torch, provided):
    """The functions of a CUDA build that nothing replaces: each is an error that states the function."""
    for name in dir(torch._C):
        if OF_CUDA.match(name) and name not in provided and name not in KEPT and not isinstance(getattr(torch._C, name), type):
            setattr(torch._C, name, refusal("torch._C." + name))


def refusal(name):
    def missing(*args, **kwargs):
        raise errors.unsupported(name)

    return missing


def rebase(torch, name, base):
    """Puts a class of Python in place of one of torch._C. A class of C cannot be taken from the bases of its subclasses, so these
    are made again, under their names."""
    old = getattr(torch._C, name)
    replace(old, base)
    for derived in old.__subclasses__():
        remake(derived, old, base)


def remake(kind, old, new):
    """A class again with another base, and all of its subclasses."""
    cell = (lambda: made).__closure__[0]  # what super() reads in the class's functions
    content = {name: within(cell, value) for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
    made = type(kind)(kind.__name__, tuple(new if part is old else part for part in kind.__bases__), content)
    replace(kind, made)
    for derived in kind.__subclasses__():
        remake(derived, kind, made)


def within(cell, value):
    """A part of a class for the class that a cell has."""
    if isinstance(value, (staticmethod, classmethod)):
        return type(value)(within(cell, value.__func__))
    if isinstance(value, property):
        return property(*[within(cell, function) for function in (value.fget, value.fset, value.fdel)], doc=value.__doc__)
    if not isinstance(value, types.FunctionType) or "__class__" not in value.__code__.co_freevars:
        return value
    cells = tuple(cell if name == "__class__" else own for name, own in zip(value.__code__.co_freevars, value.__closure__))
    function = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
    functools.update_wrapper(function, value)
    del function.__wrapped__
    function.__kwdefaults__ = value.__kwdefaults__
    return function


def replace(old, new):
    """Wherever a module has a class."""
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is old:
                setattr(module, name, new)
