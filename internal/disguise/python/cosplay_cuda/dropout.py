"""Dropout on a device. CUDA's kernel keeps a mask of bool; the CPU's operations keep one of the tensor's own type. The numbers are
those of the CPU's operations, and the mask takes as much of the device's memory as CUDA's."""
import functools
import warnings


def install(torch, booking, devices):
    """PyTorch's C++ and Python code reach dropout through the dispatcher, whose kernel for autograd this one precedes."""
    local, tags, memory = booking.local, devices.tags, devices.memory
    composite = functools.partial(torch.ops.aten.dropout.default._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)

    def book(plan, result, index):
        if plan.name == "empty_like":
            tags.put(tags.storage(result), memory.tag(index, result.numel()))
        else:
            booking.book(result, index)

    def dropout(input, p, train):
        mode = local.mode
        if not train or not 0 < p < 1 or mode is None or mode.special is not None or devices.of(input) < 0:
            return composite(input, p, train)
        mode.special = book
        try:
            return composite(input, p, train)
        finally:
            mode.special = None

    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl("dropout", dropout, "AutogradCPU")
    install.library = library  # its kernels are removed with it
