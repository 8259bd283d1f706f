"""softmax and log_softmax of float16 with a result in float32. CUDA's kernel converts as it reads; the CPU's code makes a copy in float32,
which would count as memory of the device."""
import functools
import warnings

NAMES = frozenset(("_softmax", "_log_softmax"))
BACKWARD = frozenset(("_softmax_backward_data", "_log_softmax_backward_data"))


def rule(torch, func):
    """A function that runs the kernels as CUDA does; None for other operations."""
    space, name = func._schema.name.split("::")
    half, full, to = torch.float16, torch.float32, torch._C._TensorBase.to
    if space != "aten" or name not in NAMES | BACKWARD:
        return None

    def run(args, kwargs):
        if kwargs or name in NAMES and not args[2] or name in BACKWARD and not (args[3] is half and args[0].dtype is full):
            return func(*args, **kwargs)
        if name in NAMES:
            return func(to(args[0], full), args[1], False)
        return to(func(args[0], args[1], args[2], full), half)

    return run


def install(torch, booking, devices):
    """Operations of several parts ask where a tensor is, and take the CPU's way here. These take CUDA's."""
    local, aten = booking.local, torch.ops.aten
    library = torch.library.Library("aten", "IMPL")

    def put(name, kernel):
        operator = getattr(aten, name).int
        composite = functools.partial(operator._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)

        def of_tensor(input, dim, dtype=None):
            mode = local.mode
            if input.dtype is not torch.float16 or dtype is not torch.float32 or mode is None or mode.special is not None or devices.of(input) < 0:
                return composite(input, dim, dtype)
            return kernel(input, dim, True)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.impl(name + ".int", of_tensor, "AutogradCPU")

    put("softmax", aten._softmax)
    put("log_softmax", aten._log_softmax)
    install.library = library  # its kernels are removed with it
