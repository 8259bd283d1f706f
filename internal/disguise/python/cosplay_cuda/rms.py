"""rms_norm on a device. From PyTorch 2.9 on CUDA has one kernel for it, which keeps a number for each row; the CPU's operations, which compute it
here, keep tensors of the input's size, in memory that is not booked."""
import functools
import warnings

from . import attention

ROW = 4  # bytes that the kernel keeps of each row


class Call(attention.Call):
    def laid(self, tensor):
        return tensor

    def book(self, out, operands, rows):
        memory, index = self.attention.memory, self.index
        self.give(out, memory.tag(index, out.numel() * out.element_size()), False)
        kept = self.take(rows * ROW)
        if not out.requires_grad:
            return out
        return self.attention.Leave.apply(self, out, *[tensor.detach() for tensor in operands], kept)

    def start(self, gradient, out):
        self.pending = [self.attention.memory.tag(self.index, size) for size in self.sizes]
        self.attention.local.mode.special = self.scratch

    def finish(self, gradients):
        self.attention.local.mode.special = None
        for gradient, tag in zip(gradients, self.pending):
            if gradient is not None:
                self.give(gradient, tag, False)
        self.pending = []
        return gradients


def install(torch, attentions):
    """After attention's, whose functions it uses."""
    kernel = getattr(torch.ops.aten, "_fused_rms_norm", None)
    if kernel is None or len(kernel.default._schema.returns) < 2:
        return
    composite = functools.partial(torch.ops.aten.rms_norm.default._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)

    def rms_norm(input, normalized_shape, weight=None, eps=None):
        operands = (input,) if weight is None else (input, weight)
        by_channel = input.dim() > 3 and not input.is_contiguous() and input.stride(1) == 1
        if not attentions.plain(*operands) or by_channel or not input.is_floating_point() or operands[-1].dtype != input.dtype or not input.numel():
            return composite(input, normalized_shape, weight, eps)
        call = Call(attentions, [tensor.numel() * tensor.element_size() for tensor in operands], attentions.devices.of(input))
        inside = operands
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in operands):
            inside = attentions.Enter.apply(call, *operands)
        with call:
            out = composite(inside[0], normalized_shape, inside[1] if weight is not None else None, eps)
        length = 1
        for size in normalized_shape:
            length *= size
        return call.book(out, operands, input.numel() // length)

    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl("rms_norm", rms_norm, "AutogradCPU")
    install.library = library  # its kernels are removed with it
