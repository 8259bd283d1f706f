"""Shapes of results for which PyTorch, or an old one, has no meta kernel."""
from . import errors

SMALL = 64 << 20  # bytes; an operation on less is computed, on made-up values, if there is no other way to its shape


def empty(aten, size, like, layout=None):
    return aten.empty.memory_format(list(size), dtype=like.dtype, device="meta", memory_format=layout)


def convolution_backward(shapes, func, args):
    """The meta kernels make no gradients with the channels last, as the CPU and GPUs do if an operand has them last."""
    gradient, source, weight, bias = args[:4]
    torch = shapes.torch
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(source.dim())
    layout = None
    if last and any(t.is_contiguous(memory_format=last) and not t.is_contiguous() for t in (source, weight)):
        layout = last
    sizes = (source.size(), layout), (weight.size(), layout), (bias or (weight.size(0),), None)
    return tuple(empty(shapes.aten, size, gradient, layout) if on else None for on, (size, layout) in zip(args[10], sizes))


def pack(shapes, func, args):
    """The lengths are on the host and have values, like the batch sizes. With one feature the operation costs little."""
    source, lengths, first = args
    if shapes.is_hollow(lengths):
        raise errors.no_values("torch.nn.utils.rnn.pack_padded_sequence with these lengths")
    packed, batches = func(shapes.aten.zeros.default(list(source.size()[:2]) + [1]), lengths, first)
    return empty(shapes.aten, [packed.size(0)] + list(source.size()[2:]), source), batches


def pack_backward(shapes, func, args):
    return empty(shapes.aten, args[1], args[0])


def ctc(shapes, func, args):
    """The longest target decides how much memory the loss keeps for its gradient. Where the lengths have no values, it is
    as long as the targets have room for."""
    source, targets, _, lengths = args[:4]
    known = not isinstance(lengths, shapes.Tensor) or not shapes.is_hollow(lengths)
    longest = max([int(length) for length in lengths]) if known else targets.size(-1)
    batch = source.size(1)
    return empty(shapes.aten, [batch], source), empty(shapes.aten, [batch, source.size(0), 2 * longest + 1], source)


def encoder(shapes, func, args):
    return empty(shapes.aten, args[0].size(), args[0])


def self_attention(shapes, func, args):
    """The result, and the weights if they are asked for: of each head, or their mean."""
    query, heads = args[0], args[4]
    asked, mean = (args[at] if at < len(args) else True for at in (10, 11))
    size = [query.size(0)] + ([] if mean else [heads]) + [query.size(1), args[1].size(1)]
    return empty(shapes.aten, query.size(), query), empty(shapes.aten, size, query) if asked else None


def foreach(shapes, func, args):
    """One result for each tensor of the first list."""
    of = shapes.aten.empty_like.default
    if func._schema.name.endswith("_norm"):
        return [empty(shapes.aten, (), tensor) for tensor in args[0]]
    return [of(tensor, device="meta") for tensor in args[0]]


ALWAYS = {"_ctc_loss": ctc, "convolution_backward": convolution_backward, "_pack_padded_sequence": pack, "_pack_padded_sequence_backward": pack_backward,
          "_transformer_encoder_layer_fwd": encoder, "_native_multi_head_attention": self_attention}


def on_small(shapes, func, args, kwargs):
    """Computes an operation on ones, or on zeros of whole numbers, which are right for most, in place of its hollow operands."""
    aten, seen = shapes.aten, [0]

    def filled(value):
        if isinstance(value, shapes.Tensor):
            if not shapes.is_hollow(value):
                return value
            seen[0] += value.numel() * value.element_size()
            if seen[0] > SMALL:
                raise errors.no_shapes(shapes.torch, str(func))
            operand = aten.empty_strided.default(value.size(), value.stride(), dtype=value.dtype, device="cpu")
            return aten.fill_.Scalar(operand, 1 if value.is_floating_point() or value.is_complex() else 0)
        if type(value) in (list, tuple):
            return type(value)([filled(part) for part in value])
        return value

    if not func._schema.name.startswith("aten::"):
        raise errors.no_shapes(shapes.torch, str(func))
    args, kwargs = [filled(value) for value in args], {name: filled(value) for name, value in kwargs.items()}
    try:
        result = func(*args, **kwargs)
        return shapes.twin(result, {})
    except (RuntimeError, ValueError, IndexError) as error:
        raise errors.no_shapes(shapes.torch, str(func)) from error
