"""What some kernels of CUDA take from PyTorch's allocator while they run, and those of the CPU do not."""

from . import convolutions, reductions

SORTED = 3072  # indices up to which the gradient of an embedding is added up without sorting them
INDEX = 8  # bytes
SORTS = 4  # copies of the places: in the order of the call, sorted, and where each was in both
ROWS = 10  # of a segment that one thread adds up


def softmax_backward(args):
    """The product of the gradient and the result."""
    gradient, result = args[:2]
    return [result.numel() * max(gradient.element_size(), result.element_size())]


def embedding_backward(args):
    """The sorted indices, and the sums of segments in float32 or wider."""
    gradient, indices, rows = args[:3]
    count, width = indices.numel(), gradient.size(-1)
    by_frequency = len(args) > 4 and args[4]
    if count <= SORTED and not by_frequency:
        return []
    segments = min(count, rows)
    parts, index = count // ROWS + segments, indices.element_size()
    return [count * index] * (4 if by_frequency else 3) + [segments * index] * 2 + [parts * index, parts * width * max(4, gradient.element_size())]


def loss(args):
    """The losses of all numbers, of which the result is the sum or the mean."""
    return [args[0].numel() * args[0].element_size()] if len(args) < 3 or args[2] else []


def logsumexp(args):
    """The exponentials."""
    return [args[0].numel() * args[0].element_size()]


def count_nonzero(args):
    """Whether each number counts, and that as a number to add up."""
    return [args[0].numel(), args[0].numel() * INDEX]


def masks(indices):
    """The places that masks choose, a number for each dimension."""
    return [int(mask.sum()) * mask.dim() * INDEX for mask in indices if is_mask(mask)]


def is_mask(index):
    return index is not None and str(index.dtype) in ("torch.bool", "torch.uint8")


def masked_scatter(args):
    """How many places are chosen before each number."""
    return [args[0].numel() * INDEX]


def index(args):
    return masks(args[1])


def index_put(args):
    """What is added up at the same place is sorted by its place first."""
    indices, accumulates = args[1], len(args) > 3 and args[3]
    taken = masks(indices)
    if accumulates:
        places = max(part.numel() if not is_mask(part) else int(part.sum()) for part in indices if part is not None)
        taken += [places * INDEX] * SORTS
    return taken


SIZES = {
    "_softmax_backward_data": softmax_backward, "embedding_dense_backward": embedding_backward, "mse_loss": loss, "smooth_l1_loss": loss,
    "huber_loss": loss, "logsumexp": logsumexp, "count_nonzero": count_nonzero, "masked_scatter": masked_scatter,
    "masked_scatter_": masked_scatter, "index": index, "_unsafe_index": index, "masked_select": lambda args: masks(args[1:2]),
    "index_put_": index_put, "_index_put_impl_": index_put, "index_put": index_put, "_unsafe_index_put": index_put,
}
MASKED = frozenset(("index", "_unsafe_index", "masked_select", "index_put_", "_index_put_impl_", "index_put", "_unsafe_index_put"))


class Temporaries:
    def __init__(self, torch, memory, sms, capability, shapes):
        self.torch, self.memory, self.capability, self.shapes = torch, memory, capability, shapes
        self.reductions = reductions.Reductions(sms, capability)

    def rule_of(self, func):
        """A function for the mode: books the memory, and releases it when the operation ends. None for most operations."""
        space, name = func._schema.name.split("::")
        names = [a.name for a in func._schema.arguments]
        sizes_of = SIZES.get(name) if space == "aten" else None
        if sizes_of is None and space == "aten" and name in reductions.NAMES and "other" not in names:
            def sizes_of(args):
                return self.reductions.of(name, args[0], reductions.dims_of(names, args))
        if sizes_of is None and (space != "aten" or name not in convolutions.NAMES):
            return None

        def book(index, args, kwargs, result):
            if kwargs:
                args = args + tuple(kwargs.get(n) for n in names[len(args):])
            if args[0].layout is not self.torch.strided or not args[0].numel() or self.without_mask(name, args):
                return
            sizes = sizes_of(args) if sizes_of else self.of_convolution(name, args, result)
            taken = [self.memory.workspace(index, size) for size in sizes]
            del taken

        return book

    def without_mask(self, name, args):
        """Whether an operation chooses by a mask that has no values."""
        if self.shapes is None or name not in MASKED:
            return False
        return any(is_mask(part) and self.shapes.is_hollow(part) for part in (args[1] if isinstance(args[1], (list, tuple)) else args[1:2]))

    def of_convolution(self, name, args, result):
        cudnn = self.torch.backends.cudnn
        return convolutions.workspace(name, args, result, self.capability(), cudnn.allow_tf32) if cudnn.enabled else []
