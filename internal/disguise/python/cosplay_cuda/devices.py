"""Maps CUDA devices in the calls of a program to the CPU, and puts their results on the device that the program named."""
import contextlib
import functools

from . import errors, streams
from .booking import UNSET
from .storages import CPU, OPEN

# Functions that make a tensor from sizes and numbers alone.
CONSTRUCTORS = (
    "arange", "bartlett_window", "blackman_window", "empty", "empty_permuted", "empty_quantized", "empty_strided", "eye", "from_file", "full",
    "hamming_window", "hann_window", "kaiser_window", "linspace", "logspace", "normal", "ones", "rand", "randint", "randn", "randperm", "range",
    "scalar_tensor", "tril_indices", "triu_indices", "zeros", "_efficientzerotensor", "_empty_affine_quantized",
    "_empty_per_channel_affine_quantized", "fft.fft_fftfreq", "fft.fft_rfftfreq",
)
# Functions whose result is on the device of their first tensor, unless they are given another.
LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
# Functions that make a tensor from data, which can be a tensor of any device.
FROM_DATA = ("as_tensor", "asarray", "tensor")
SPARSE = ("sparse_coo_tensor", "sparse_compressed_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
          "_sparse_coo_tensor_unsafe", "_sparse_compressed_tensor_unsafe", "_sparse_csr_tensor_unsafe")


class Devices:
    def __init__(self, torch, booking, tags, counters, memory):
        self.torch, self.booking, self.tags, self.counters, self.memory = torch, booking, tags, counters, memory
        self.local, self.book, self.tag_of = booking.local, booking.book, booking.tag_of
        self.cpu = torch.device("cpu")
        self.known = {}  # torch.device of a CUDA device, by index
        self.by_type = False  # whether set_default_tensor_type puts tensors on the current device
        self.to = torch._C._TensorBase.to
        self.kinds = (str, int, torch.device)

    @property
    def default(self):
        """Where tensors are of which a program names no device."""
        return streams.current.device if self.by_type else CPU

    def device(self, index):
        device = self.known.get(index)
        if device is None:
            device = self.known[index] = self.torch.device("cuda", index)
        return device

    def index(self, device):
        """The index of a device that a program names: CPU, or that of a CUDA device; None for all other devices."""
        torch = self.torch
        if device is None:
            return CPU
        if isinstance(device, bool) or not isinstance(device, self.kinds):
            return self.index(torch.device(device))
        if isinstance(device, int):
            kind, index = "cuda", device
        else:
            if isinstance(device, str):
                device = torch.device(device)
            kind, index = device.type, device.index
        if kind == "cpu":
            return CPU
        if kind != "cuda":
            return None
        torch.cuda._lazy_init()
        if index is None or index < 0:
            return streams.current.device
        if index >= torch.cuda.device_count():
            raise errors.invalid_device(torch)
        return index

    def of(self, tensor):
        """The index of a tensor's device."""
        tag = self.tag_of(tensor)
        return CPU if tag is None or tag.index < 0 else tag.index

    @contextlib.contextmanager
    def on(self, index):
        """What is made in this block by functions that can take a device is on this one."""
        local = self.local
        before, local.target = local.target, index
        try:
            yield
        finally:
            local.target = before

    def put(self, result, index):
        """Books what the mode did not see."""
        if index >= 0:
            self.book(result, index)
        return result

    def move(self, tensor, index, dtype=None, memory_format=None):
        """A copy of a tensor on another device."""
        if tensor.requires_grad and self.torch.is_grad_enabled():
            return self.Move.apply(tensor, index, dtype, memory_format)
        return self.copy(tensor, index, dtype, memory_format)

    def placed(self, value, index):
        return self.move(value, index) if isinstance(value, self.torch.Tensor) and self.of(value) != index else value

    def copy(self, tensor, index, dtype, memory_format):
        source = self.of(tensor)
        if self.torch._C._get_tracing_state() is not None:
            raise errors.unsupported("A copy between devices in torch.jit.trace", "move the tensors before")
        local = self.local
        before, local.target = local.target, index
        try:
            if memory_format is None:
                result = self.to(tensor, self.cpu, dtype, False, True)
            else:
                result = self.to(tensor, self.cpu, dtype, False, True, memory_format=memory_format)
        finally:
            local.target = before
        self.counters.copied(source, index, result)
        return self.put(result, index)

    def make_move(self):
        devices = self

        class Move(self.torch.autograd.Function):
            """A copy between devices, whose gradient returns to the device of the source."""

            @staticmethod
            def forward(tensor, index, dtype, memory_format):
                return devices.copy(tensor, index, dtype, memory_format)

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.source, ctx.target, ctx.dtype, ctx.to = devices.of(inputs[0]), inputs[1], inputs[0].dtype, output.dtype

            @staticmethod
            def backward(ctx, gradient):
                if devices.of(gradient) != ctx.source or gradient.dtype != ctx.dtype:
                    gradient = devices.move(gradient, ctx.source, ctx.dtype)
                if ctx.source == CPU and devices.local.ambient >= 0:
                    devices.local.ambient = OPEN  # what PyTorch makes from here on can be the host's
                return gradient, None, None, None

            @staticmethod
            def jvp(ctx, tangent, *rest):
                return devices.move(tangent, ctx.target, ctx.to)

            @staticmethod
            def vmap(info, in_dims, tensor, index, dtype, memory_format):
                return Move.apply(tensor, index, dtype, memory_format), in_dims[0]

        if errors.version(self.torch) < (2, 0):
            forward, remember = Move.forward, Move.setup_context

            def both(ctx, *inputs):
                output = forward(*inputs)
                remember(ctx, inputs, output)
                return output

            Move.forward = staticmethod(both)
        Move.__name__ = "ToCopy"
        self.Move = Move

    def wrap(self, original, name):
        """A constructor that takes CUDA devices."""
        local, put, find, cpu = self.local, self.put, self.index, self.cpu
        like, data = name in LIKE, name in FROM_DATA
        sparse = name in SPARSE
        Tensor = self.torch.Tensor

        def constructor(*args, **kwargs):
            device = kwargs.get("device")
            if device is None:
                if like and not kwargs.get("pin_memory"):
                    return original(*args, **kwargs)
                index = self.of(args[0] if args else kwargs["input"]) if like else self.default
                if data or sparse:
                    for arg in args[:4]:
                        if isinstance(arg, Tensor):
                            index = self.of(arg)
            else:
                index = find(device)
                if index is None:
                    return original(*args, **kwargs)
                kwargs["device"] = cpu
            if sparse:
                args = tuple(self.placed(arg, index) for arg in args)
                kwargs = {key: self.placed(arg, index) for key, arg in kwargs.items()}
            if kwargs.get("generator") is not None:
                self.booking.check_generator(kwargs["generator"], index)
            pinned = kwargs.pop("pin_memory", False)
            before = local.target
            if name == "tensor" and index >= 0:
                self.graphs.refuse()
            if data and name != "tensor":
                result = share(args, kwargs, index)
            else:
                local.target = index
                try:
                    result = original(*args, **kwargs)
                finally:
                    local.target = before
            if index >= 0:
                put(result, index)
                if name == "tensor":
                    self.counters.copied(CPU, index, result)
                    self.booking.keep(result)
            return result.pin_memory() if pinned and index < 0 else result

        def share(args, kwargs, index):
            """as_tensor and asarray return their argument itself if they can."""
            before, local.target = local.target, CPU
            try:
                result = original(*args, **kwargs)
            finally:
                local.target = before
            first = args[0] if args else None
            if index >= 0 and self.of(result) != index:
                self.graphs.refuse()
            if result is first:
                return result if self.of(result) == index else self.move(result, index)
            if isinstance(first, Tensor) and self.of(first) == index:
                return result
            return self.move(result, index) if index >= 0 or isinstance(first, Tensor) else result

        functools.update_wrapper(constructor, original, assigned=("__name__", "__doc__", "__qualname__"), updated=())
        constructor.__module__ = "torch"
        return constructor

    def install(self):
        torch = self.torch
        self.make_move()
        wrapped = {}
        remember_constructors(torch)
        for name in CONSTRUCTORS + LIKE + FROM_DATA + SPARSE:
            holder, _, last = name.rpartition(".")
            last = last.replace("fft_", "")
            module = getattr(torch, holder) if holder else torch
            original = getattr(module, last, None)
            if original is not None:
                wrapper = self.wrap(original, name)
                setattr(module, last, wrapper)
                wrapped[original] = wrapper
                script_as(torch, original, wrapper, name)
        self.default_device(wrapped)
        self.generators()

    def default_device(self, wrapped):
        """with torch.device("cuda") and set_default_device add the device below the functions that programs call."""
        torch = self.torch
        if hasattr(torch, "set_default_device"):
            from torch.utils import _device

            context, constructors = _device.DeviceContext, _device._device_constructors
            original = context.__torch_function__

            def add_device(mode, func, types, args=(), kwargs=None):
                if mode.device.type != "cuda":
                    return original(mode, func, types, args, kwargs)
                kwargs = kwargs or {}
                if func in constructors() and self.local.target < 0 and (kwargs.get("device") is None or not self.named()):
                    again = wrapped.get(func)
                    if again is not None:
                        kwargs["device"] = mode.device
                        return again(*args, **kwargs)
                return func(*args, **kwargs)

            context.__torch_function__ = add_device

    def script(self, original, wrapper, name):
        script_as(self.torch, original, wrapper, name)

    def named(self):
        return self.local.target != UNSET

    def generators(self):
        torch = self.torch
        base = torch._C.Generator

        class Kind(type(base)):
            def __instancecheck__(cls, other):
                return isinstance(other, base)

        class Generator(base, metaclass=Kind):
            def __new__(cls, device="cpu"):
                index = self.index(device)
                if index is None:
                    return base.__new__(cls, device)  # raises PyTorch's error
                generator = base.__new__(cls, self.cpu)
                generator._index = index
                self.booking.generators[generator._cdata] = "cuda" if index >= 0 else "cpu"
                return generator

            def __init__(self, device="cpu"):
                pass

            @property
            def device(generator):
                return self.cpu if generator._index < 0 else self.device(generator._index)

            def __reduce__(generator):
                return Generator, (generator.device,), (generator.initial_seed(), generator.get_state())

            def __setstate__(generator, state):
                generator.manual_seed(state[0])
                generator.set_state(state[1])

        Generator.__module__, Generator.__qualname__ = "torch", "Generator"
        torch.Generator = Generator


def remember_constructors(torch):
    """PyTorch collects its constructors on first use; it must find its own."""
    if hasattr(torch, "set_default_device"):
        from torch.utils import _device

        _device._device_constructors()


def script_as(torch, original, wrapper, name):
    """torch.jit.script knows its functions by identity."""
    try:
        builtins = torch.jit._builtins
        operator = builtins._find_builtin(original)
        if operator is not None:
            builtins._register_builtin(wrapper, operator)
    except (AttributeError, RuntimeError):
        pass
