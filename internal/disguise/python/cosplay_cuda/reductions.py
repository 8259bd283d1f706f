"""The memory of CUDA's reductions. Where many numbers make a few, several blocks of threads share a result and leave their parts in a
buffer. Its size follows from how PyTorch launches the kernel, which depends on the target's multiprocessors."""
from .sdpa import parts

WARP, THREADS, COMPLEX_THREADS = 32, 512, 256
VECTOR = 4  # numbers that a thread reads at once
FEWEST, MOST = 16, 256  # numbers that a thread adds up
COUNTER = 4  # bytes, for each group of blocks that share results


class Shape:
    """A tensor as the kernel sees it: its dimensions by their strides, in numbers, without those of length 1, and joined where they are one
    piece. The reduced ones are apart from the others."""

    def __init__(self, tensor, dims):
        self.offset = tensor.storage_offset()
        count = tensor.dim()
        reduced = set(range(count)) if not dims else {dim % count for dim in dims} if count else set()
        sides = [[], []]
        for at, (length, step) in enumerate(zip(tensor.size(), tensor.stride())):
            if length > 1:
                sides[at in reduced].append((step, length))
        self.outputs, self.inputs = joined(sides[0]), joined(sides[1])

    def vector(self):
        """How many results a thread computes: as many as lie side by side everywhere."""
        size = VECTOR
        for number in [self.offset, self.outputs[0][1]] + [step for step, _ in self.inputs + self.outputs[1:]]:
            while number % size:
                size //= 2
        return size


def joined(dims):
    found = []
    for step, length in sorted(dims):
        if found and found[-1][0] * found[-1][1] == step:
            found[-1] = found[-1][0], found[-1][1] * length
        else:
            found.append((step, length))
    return found


def total(dims):
    result = 1
    for _, length in dims:
        result *= length
    return result


def power(number):
    """The largest power of two up to a number."""
    return 1 << max(1, number).bit_length() - 1


def buffers(tensor, dims, item, sms, threads_of_sm, widest=VECTOR):
    """The bytes that a reduction takes for its time, none for most. item: those of a part of a result; widest: the numbers of a
    thread's step."""
    if tensor.numel() < MOST * FEWEST:
        return []
    shape = Shape(tensor, dims)
    outputs, inputs = total(shape.outputs), total(shape.inputs)
    if inputs < MOST:
        return []
    along = not shape.outputs or shape.inputs[0][0] < shape.outputs[0][0]  # the reduced numbers lie side by side
    width, height, vector = (inputs, outputs, 1) if along else (outputs, inputs, 1)
    if (shape.inputs if along else shape.outputs)[0][0] == 1:
        if along and width > 128 and len(shape.inputs) == 1 and widest >= VECTOR:
            width //= VECTOR
        elif not along:
            vector = shape.vector()
            width //= vector
    limit = (COMPLEX_THREADS if str(tensor.dtype) == "torch.complex128" else THREADS) // vector
    wide, high = (power(number) if number < limit else limit for number in (width, height))
    block = min(wide, WARP)
    tall = min(high, limit // block)
    block = min(wide, limit // tall)
    of_thread = parts(inputs, block) if along else inputs
    shared = of_thread >= min(tall * FEWEST, MOST)  # the threads of a block share a result
    grid = parts(outputs // vector, (1 if along else block) * (1 if shared else tall))
    of_thread = parts(inputs, (block if along else 1) * tall) if shared else of_thread
    most = sms * (threads_of_sm // (block * tall))
    if not shared or of_thread < MOST or grid > most:
        return []
    blocks = max(min(parts(most, grid), parts(of_thread, FEWEST)), parts(of_thread, MOST))
    if blocks < 2:
        return []
    return [item * outputs * blocks * (1 if along else block * vector), COUNTER * grid]


SUMS = frozenset(("sum", "nansum", "mean", "prod", "norm", "linalg_vector_norm"))
VALUES = frozenset(("amax", "amin"))
PLACES = frozenset(("argmax", "argmin"))
ALL_OR_PLACES = frozenset(("max", "min"))
TRUTHS = frozenset(("all", "any"))
SPREADS = frozenset(("var", "std", "var_mean", "std_mean"))
NAMES = SUMS | VALUES | PLACES | ALL_OR_PLACES | TRUTHS | SPREADS
WHOLE = ("torch.uint8", "torch.int8", "torch.int16", "torch.int32", "torch.bool")
DIMS = ("dim", "dims")


class Reductions:
    def __init__(self, sms, capability):
        self.sms, self.capability = sms, capability

    def of(self, name, tensor, dims):
        """The bytes that an operation takes beside its results."""
        item = tensor.element_size()
        taken = []
        if name in SUMS:
            if str(tensor.dtype) in WHOLE and name != "mean":  # they are added up as int64, from a copy
                taken, item = [tensor.numel() * 8], 8
            part = max(item, 4)
        elif name in PLACES or name in ALL_OR_PLACES and dims:
            part = 16
        elif name in SPREADS:
            part = 4 * max(item, 4)  # mean, sum of squares, and their number twice
        else:
            part = 1 if name in TRUTHS else item
        return taken + buffers(tensor, dims, part, self.sms(), self.threads(), 2 if name in SPREADS else VECTOR)

    def threads(self):
        """What a multiprocessor of the target holds at once, by NVIDIA's tables for each compute capability."""
        capability = self.capability()
        if capability == (7, 5):
            return 1024
        return 1536 if capability in ((8, 6), (8, 7), (8, 9)) or capability >= (12, 0) else 2048


def dims_of(arguments, args):
    """The dimensions that a call names."""
    for name, value in zip(arguments, args):
        if name in DIMS:
            return [value] if isinstance(value, int) else list(value) if value else []
    return []
