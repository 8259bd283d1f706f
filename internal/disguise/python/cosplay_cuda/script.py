"""TorchScript. Compiled code asks for devices in C++, where every tensor is on the CPU. So a function that asks, or that names
a CUDA device, stays Python, which is what PYTORCH_JIT=0 does with all functions; the others are compiled."""
import functools
import re
import warnings
import zipfile

from . import errors
from .devices import CONSTRUCTORS, LIKE

ASKING = frozenset(("prim::is_cuda", "prim::is_cpu", "aten::cuda", "aten::cpu", "aten::pin_memory", "aten::is_pinned", "aten::get_device"))
# What takes a device and gives a tensor: it lands where its operands are.
TAKING = frozenset("aten::" + name.replace(".", "_") for name in CONSTRUCTORS + LIKE + (
    "tensor", "as_tensor", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros"))
NOTE = "cosplay_device"
SHORT = "compiled code does not see them in this session, whose host has no GPU"


def install(torch, devices):
    jit = torch.jit
    script, load = jit.script, jit.load
    warned = []

    @functools.wraps(script)
    def compile(obj=None, *args, **kwargs):
        kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 1  # PyTorch resolves names in the frame of its caller
        result = script(obj, *args, **kwargs)
        # PyTorch's own functions expect what is compiled.
        if obj is result or getattr(obj, "__module__", "").startswith("torch.") and not isinstance(obj, torch.nn.Module) or not asks(result):
            return result
        if not warned:
            warned.append(True)
            name = getattr(obj, "__qualname__", type(obj).__name__)
            warnings.warn("torch.jit.script: %s asks for devices, and %s; it and others like it run uncompiled" % (name, SHORT))
        return obj

    @functools.wraps(load)
    def read(f, map_location=None, *args, **kwargs):
        index = devices.index(saved_on(f) if map_location is None else map_location)
        if index is None or index < 0:
            return load(f, map_location, *args, **kwargs)
        module = load(f, "cpu", *args, **kwargs)
        return module.to(devices.device(index))

    kind = jit._script.RecursiveScriptModule
    apply = kind._apply

    @functools.wraps(apply)
    def move(self, *args, **kwargs):
        result = apply(self, *args, **kwargs)
        first = next(iter(self.parameters()), None)
        if first is not None and devices.of(first) >= 0 and asks(self):
            raise errors.unsupported("A compiled module that asks for devices", "use the module itself in place of its TorchScript")
        return result

    kind._apply = move
    for name in ("save", "save_to_buffer"):
        setattr(kind, name, noting(devices, getattr(kind, name)))
    jit.script, jit._script.script = compile, compile
    jit.load, jit._serialization.load = read, read


def asks(compiled):
    """Whether the code of a compiled function or module depends on the device of a tensor."""
    for graph in graphs(compiled):
        if graph_asks(graph):
            return True
    return False


def graphs(compiled):
    part = getattr(compiled, "_c", None)
    if part is None:
        return [compiled.inlined_graph] if hasattr(compiled, "inlined_graph") else []
    return [part._get_method(name).inlined_graph for name in part._method_names()]


def graph_asks(block):
    for node in block.nodes():
        kind = node.kind()
        if kind in ASKING or kind == "prim::Constant" and names_cuda(node):
            return True
        if kind not in TAKING and any(value.type().kind() == "DeviceObjType" for value in node.inputs()):
            return True
        if kind == "aten::to" and list(node.inputs())[1].type().kind() == "TensorType":
            return True  # the device of another tensor
        if any(graph_asks(inner) for inner in node.blocks()):
            return True
    return False


def names_cuda(node):
    value = next(iter(node.outputs()))
    return value.type().kind() == "DeviceObjType" and str(value.toIValue()).startswith("cuda")


def noting(devices, save):
    """PyTorch's C++ code writes that the tensors are on the CPU, so a file beside them has the device."""

    @functools.wraps(save)
    def run(self, *args, **kwargs):
        places = {devices.of(tensor) for tensor in (*self.parameters(), *self.buffers())}
        if len(places) == 1 and min(places) >= 0:
            kwargs["_extra_files"] = dict(kwargs.get("_extra_files") or {}, **{NOTE: errors.device_name(min(places))})
        return save(self, *args, **kwargs)

    return run


def saved_on(f):
    """The CUDA device of a module in a file, which a session or PyTorch on a GPU wrote; None if it has none."""
    start = f.tell() if hasattr(f, "tell") else None
    try:
        with zipfile.ZipFile(f) as file:
            for name in file.namelist():
                if name.endswith("/extra/" + NOTE):
                    return file.read(name).decode()
                if name.endswith("/data.pkl"):
                    found = re.search(rb"cuda:\d+", file.read(name))
                    if found:
                        return found.group().decode()
    except (OSError, ValueError, zipfile.BadZipFile):
        pass  # PyTorch reports what is wrong with the file
    finally:
        if start is not None:
            f.seek(start)
    return None
