"""scaled_dot_product_attention on a device. The CPU's operations compute it, in memory that is not booked; what is booked is what
CUDA's kernel takes: the result, what it keeps for the backward pass, and what both passes need for their time."""
import functools
import warnings

from . import errors, sdpa
from .storages import Tag

ORDER = (sdpa.FLASH, sdpa.EFFICIENT, sdpa.MATH, sdpa.CUDNN)


class Arranged(Tag):
    """The tag of a result that CUDA lays out by position where the CPU does by head. A program's copy by position, which is that
    result itself on CUDA, has the same memory."""

    __slots__ = ("size",)


class Attention:
    def __init__(self, torch, tags, memory, capability, sms):
        self.torch, self.tags, self.memory, self.capability, self.sms = torch, tags, memory, capability, sms
        self.tag_of, self.version = tags.reader(), errors.version(torch)

    def rule_of(self, func):
        """A function for the mode, for copies: books none of an arranged result."""
        if func._schema.name != "aten::clone":
            return None

        def share(index, args, kwargs, result):
            tag = self.tag_of(args[0])
            if type(tag) is Arranged and args[0].transpose(1, 2).size() == tag.size and result.is_contiguous() and not args[0].is_contiguous():
                self.tags.put(self.tags.storage(result), tag)

        return share

    def install(self, booking, devices):
        torch = self.torch
        packet = getattr(torch.ops.aten, "scaled_dot_product_attention", None)
        if packet is None:
            return
        self.booking, self.devices, self.local = booking, devices, booking.local
        self.composite = functools.partial(packet.default._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)
        self.functions()
        library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.impl("scaled_dot_product_attention", self.run, "AutogradCPU")
        self.library = library  # its kernels are removed with it

    def plain(self, *tensors):
        """Whether these are tensors of a device, outside of torch.func and of traces."""
        torch, mode = self.torch, self.local.mode
        kinds = torch.Tensor, torch.nn.Parameter
        return (mode is not None and mode.special is None and all(type(tensor) in kinds and tensor.layout is torch.strided for tensor in tensors)
                and torch._C._get_tracing_state() is None and torch._C._functorch.peek_interpreter_stack() is None
                and self.devices.of(tensors[0]) >= 0)

    def run(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **kwargs):
        operands = (query, key, value) + (() if attn_mask is None else (attn_mask,))
        if not self.plain(*operands) or not query.dim() == key.dim() == value.dim() == 4:
            return self.composite(query, key, value, attn_mask, dropout_p, is_causal, **kwargs)
        torch = self.torch
        gradients = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in operands)
        case = self.case(query, key, value, attn_mask, dropout_p, is_causal, kwargs.get("enable_gqa", False), gradients)
        kind = case.kernel()
        if kind is None:
            raise RuntimeError("No available kernel. Aborting execution.")
        if kind == sdpa.MATH and not self.fused_here(query, key, value, attn_mask, dropout_p, is_causal, kwargs):
            return self.composite(query, key, value, attn_mask, dropout_p, is_causal, **kwargs)
        call = Call(self, sdpa.Sizes(case, kind), self.devices.of(query))
        if gradients:
            operands = self.Enter.apply(call, *operands)
        permitted = torch._C._get_math_sdp_enabled()
        with call:
            torch._C._set_sdp_use_math(True)
            try:
                out = call.laid(self.composite(*operands[:3], operands[3] if attn_mask is not None else None, dropout_p, is_causal, **kwargs))
            finally:
                torch._C._set_sdp_use_math(permitted)
        return call.book(out, query, key, value, attn_mask)

    def case(self, query, key, value, mask=None, dropout=0.0, causal=False, gqa=False, gradients=False):
        torch = self.torch
        deterministic = torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()
        return sdpa.Case(self.version, self.capability(), self.sms(), self.enabled(), (query, key, value), mask, dropout, causal, gqa, gradients,
                         deterministic)

    def enabled(self):
        core = self.torch._C
        order = list(core._get_sdp_priority_order()) if hasattr(core, "_get_sdp_priority_order") else list(ORDER)
        asked = {sdpa.FLASH: "flash", sdpa.EFFICIENT: "mem_efficient", sdpa.MATH: "math", sdpa.CUDNN: "cudnn"}
        on = {kind: getattr(core, "_get_%s_sdp_enabled" % name, lambda: False)() for kind, name in asked.items()}
        return [kind for kind in dict.fromkeys(order) if on.get(kind)]

    def fused_here(self, query, key, value, mask, dropout, causal, kwargs):
        """Whether the CPU runs one kernel, which keeps less than CUDA's many."""
        return self.torch._fused_sdp_choice(query, key, value, mask, dropout, causal, **kwargs) == sdpa.FLASH

    def functions(self):
        attention = self

        class Enter(self.torch.autograd.Function):
            """What the operands pass. In the backward pass it comes after all of the CPU's operations."""

            @staticmethod
            def forward(ctx, call, *operands):
                ctx.call = call
                ctx.set_materialize_grads(False)
                # The CPU chooses its kernel by whether an operand, such as a mask, needs a gradient.
                ctx.mark_non_differentiable(*[tensor for tensor, needed in zip(operands, ctx.needs_input_grad[1:]) if not needed])
                return operands

            @staticmethod
            def backward(ctx, *gradients):
                return (None,) + ctx.call.finish(gradients)

        class Leave(self.torch.autograd.Function):
            """What the result passes. In the backward pass it comes first. It has what CUDA's kernel saves."""

            @staticmethod
            def forward(ctx, call, out, *saved):
                ctx.call = call
                ctx.set_materialize_grads(False)
                out = out.data  # no view, so that programs can change it in place
                ctx.save_for_backward(out, *saved)
                return out

            @staticmethod
            def backward(ctx, gradient):
                out = ctx.saved_tensors[0]
                if gradient is not None:
                    ctx.call.start(gradient, out)
                return (None, gradient) + (None,) * (len(ctx.needs_input_grad) - 2)

        for kind in (Enter, Leave):
            kind.__name__ = kind.__qualname__ = "ScaledDotProductAttention"
        self.Enter, self.Leave = Enter, Leave


class Call:
    def __init__(self, attention, sizes, index):
        self.attention, self.sizes, self.index = attention, sizes, index
        self.pending = []

    def scratch(self, plan, result, index):
        """Books nothing on the device of the call. Another device's backward pass can come in between."""
        attention = self.attention
        if index != self.index:
            return attention.booking.book(result, index)
        for tensor in result if isinstance(result, (list, tuple)) else (result,):
            if tensor is not None:
                storage = attention.tags.storage(tensor)
                if attention.tags.of_storage(storage) is None:
                    attention.tags.put(storage, Tag(index))

    def __enter__(self):
        local = self.attention.local
        self.target, local.target = local.target, self.index  # PyTorch makes a causal mask from sizes alone
        local.mode.special = self.scratch

    def __exit__(self, *error):
        local = self.attention.local
        local.target, local.mode.special = self.target, None

    def laid(self, tensor):
        """The same with each sequence in one piece, if CUDA's kernel lays it out so and the CPU's mixes the sequences of a batch."""
        if tensor is None or self.sizes.kind != sdpa.EFFICIENT or not tensor.permute(2, 0, 1, 3).is_contiguous():
            return tensor
        return tensor.transpose(1, 2).contiguous().transpose(1, 2)

    def take(self, size):
        """A tensor without numbers that has memory of the device."""
        attention = self.attention
        holder = attention.torch._C._VariableFunctions.empty(0)
        attention.tags.put(attention.tags.storage(holder), attention.memory.tag(self.index, size))
        return holder

    def give(self, tensor, tag, by_position):
        """Gives a result of the CPU's operations the memory of CUDA's."""
        attention = self.attention
        storage = attention.tags.storage(tensor)
        old = attention.tags.of_storage(storage)
        if old is None or old.index != self.index or old.block is not None:
            return  # it is an operand's
        if by_position and not tensor.transpose(1, 2).is_contiguous():
            kind = Arranged(self.index, tag.block, tag.release, hollow=old.hollow)
            kind.size, tag.block = tensor.size(), None
            attention.tags.put(storage, kind)
        else:
            old.block, old.release, tag.block = tag.block, tag.release, None

    def book(self, out, query, key, value, mask):
        attention, sizes = self.attention, self.sizes
        self.give(out, attention.memory.tag(self.index, sizes.out), sizes.by_position[0])
        kept = [self.take(size) for size in sizes.kept]
        whilst = [attention.memory.workspace(self.index, size) for size in sizes.whilst]
        del whilst  # it lives while the kernel runs
        if not out.requires_grad:
            return out
        saved = [tensor.detach() for tensor in (query, key, value)]
        if mask is not None and mask.is_floating_point():
            saved.append(mask.detach())
        return attention.Leave.apply(self, out, *(saved + kept))

    def start(self, gradient, out):
        """Books what CUDA's backward pass takes, while all that is saved still lives."""
        memory, index = self.attention.memory, self.index
        self.pending = [memory.tag(index, size) for size in self.sizes.gradients]
        whilst = [memory.workspace(index, size) for size in self.sizes.backward(gradient, out)]
        del whilst
        self.attention.local.mode.special = self.scratch

    def finish(self, gradients):
        gradients = tuple(map(self.laid, gradients[:3])) + gradients[3:]
        self.attention.local.mode.special = None
        for gradient, tag, by_position in zip(gradients, self.pending, self.sizes.by_position[1:]):
            if gradient is not None:
                self.give(gradient, tag, by_position)
        if len(gradients) > 3 and gradients[3] is not None:
            self.give(gradients[3], self.attention.memory.tag(self.index, gradients[3].numel() * gradients[3].element_size()), False)
        self.pending = []
        return gradients
