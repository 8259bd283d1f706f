"""What some kernels of CUDA take from PyTorch's allocator while they run, and those of the CPU do not."""

SORTED = 3072  # indices up to which the gradient of an embedding is added up without sorting them
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


SIZES = {"_softmax_backward_data": softmax_backward, "embedding_dense_backward": embedding_backward}


class Temporaries:
    def __init__(self, torch, memory):
        self.torch, self.memory = torch, memory

    def rule_of(self, func):
        """A function for the mode: books the memory, and releases it when the operation ends. None for most operations."""
        space, name = func._schema.name.split("::")
        sizes_of = SIZES.get(name) if space == "aten" else None
        if sizes_of is None:
            return None
        names = [a.name for a in func._schema.arguments]

        def book(index, args, kwargs, result):
            if kwargs:
                args = args + tuple(kwargs.get(n) for n in names[len(args):])
            if args[0].layout is self.torch.strided and args[0].numel():
                taken = [self.memory.tag(index, size) for size in sizes_of(args)]
                del taken

        return book
