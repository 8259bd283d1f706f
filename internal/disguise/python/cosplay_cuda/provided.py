"""Kernels in Python for operations that PyTorch computes on CUDA alone."""
import warnings


def kernels(torch, by_name):
    """Gives PyTorch kernels that the CPU lacks. What they run inside is not booked, as with PyTorch's own."""
    library = torch.library.Library("aten", "IMPL", "CPU")
    for name, kernel in by_name.items():
        operator = getattr(torch.ops.aten, name.partition(".")[0], None)
        if operator is not None and not torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, "CPU"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                library.impl(name, kernel)
    libraries.append(library)  # its kernels are removed with it


libraries = []
