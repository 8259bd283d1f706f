"""Which kernel CUDA runs for attention and what it takes, by version and compute capability, without PyTorch."""
import sys
import types

sys.dont_write_bytecode = True
sys.path.insert(0, "python")
from cosplay_cuda import sdpa
from cosplay_cuda.sdpa import CUDNN, EFFICIENT, FLASH, MATH

ITEMS = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "bool": 1}


class Tensor:
    requires_grad = False

    def __init__(self, size, dtype, stride=None):
        self.sizes, self.dtype = size, "torch." + dtype
        steps = []
        for length in reversed(size):
            steps.append(steps[-1] * last if steps else 1)
            last = length
        self.strides = stride or tuple(reversed(steps))

    def size(self, at=None):
        return self.sizes if at is None else self.sizes[at]

    def stride(self, at=None):
        return self.strides if at is None else self.strides[at]

    def dim(self):
        return len(self.sizes)

    def numel(self):
        result = 1
        for length in self.sizes:
            result *= length
        return result

    def element_size(self):
        return ITEMS[self.dtype[6:]]

    def transpose(self, a, b):
        def change(values):
            values = list(values)
            values[a], values[b] = values[b], values[a]
            return tuple(values)

        return Tensor(change(self.sizes), self.dtype[6:], change(self.strides))

    def is_contiguous(self):
        return all(length == 1 or step == wanted for length, step, wanted in zip(self.sizes, self.strides, Tensor(self.sizes, "bool").strides))


def by_heads(batch, heads, rows, depth, dtype):
    return Tensor((batch, heads, rows, depth), dtype)


def by_rows(batch, heads, rows, depth, dtype):
    return Tensor((batch, rows, heads, depth), dtype).transpose(1, 2)


def case(operands, version=(2, 6), capability=(8, 6), enabled=(FLASH, EFFICIENT, MATH, CUDNN), mask=None, dropout=0.0, causal=False, gqa=False,
         gradients=True):
    return sdpa.Case(version, capability, 84, list(enabled), operands, mask, dropout, causal, gqa, gradients)


def equal(got, want, what=""):
    assert got == want, "%s: %s, want %s" % (what, got, want)


def kernels():
    def of(dtype, depth=64, kv=8, rows=128, **options):
        return case([by_rows(2, heads, length, depth, dtype) for heads, length in ((8, rows), (kv, 128), (kv, 128))], **options).kernel()

    mask = Tensor((128, 128), "bool")
    for want, got in (
            (FLASH, of("float16")), (FLASH, of("bfloat16", dropout=0.1)), (EFFICIENT, of("float32")), (MATH, of("float64")),
            (EFFICIENT, of("float16", capability=(7, 5))), (MATH, of("bfloat16", capability=(7, 5))), (EFFICIENT, of("bfloat16", mask=mask)),
            (FLASH, of("bfloat16", depth=20)), (MATH, of("float32", depth=10)), (EFFICIENT, of("float32", depth=10, capability=(6, 1))),
            (EFFICIENT, of("bfloat16", depth=200)), (FLASH, of("bfloat16", depth=200, gradients=False)), (FLASH, of("bfloat16", depth=200, capability=(8, 0))),
            (EFFICIENT, of("bfloat16", rows=64, causal=True)), (FLASH, of("bfloat16", kv=2, gqa=True)), (MATH, of("float32", kv=2, gqa=True)),
            (EFFICIENT, of("float32", kv=2, gqa=True, version=(2, 14))), (MATH, of("bfloat16", kv=2)),
            (FLASH, of("bfloat16", capability=(9, 0))), (CUDNN, of("bfloat16", capability=(9, 0), version=(2, 14))),
            (MATH, of("bfloat16", capability=(12, 0))), (FLASH, of("bfloat16", capability=(12, 0), version=(2, 14))),
            (None, of("float32", enabled=(FLASH,))), (MATH, of("bfloat16", enabled=(MATH,))), (CUDNN, of("bfloat16", enabled=(CUDNN,)))):
        equal(got, want)


def flash():
    """12 heads of 64 numbers, 1024 positions, batch 4."""
    operands = [by_rows(4, 12, 1024, 64, "bfloat16")] * 3
    sizes = sdpa.Sizes(case(operands), FLASH)
    rows = 4 * 12 * 1024
    equal((sizes.out, sizes.kept, sizes.whilst, sizes.by_position), (rows * 64 * 2, [rows * 4], [], [True] * 4))
    equal(sizes.backward(operands[0], operands[0]), [rows * 4, rows * 64 * 4])
    equal(sizes.backward(by_heads(4, 12, 1024, 64, "bfloat16"), operands[0])[0], rows * 64 * 2)
    groups = [by_rows(1, 8, 100, 64, "bfloat16")] + [by_rows(1, 2, 100, 64, "bfloat16")] * 2
    sizes = sdpa.Sizes(case(groups, gqa=True), FLASH)
    equal(sizes.backward(groups[0], groups[0]), [8 * 128 * 4, 8 * 128 * 64 * 4] + [100 * 8 * 64 * 2] * 2)
    one = [by_heads(1, 4, 1, 128, "float16")] + [by_heads(1, 4, 4096, 128, "float16")] * 2
    equal(sdpa.Sizes(case(one), FLASH).whilst, [32 * 4 * 4, 32 * 4 * 128 * 4])  # 32 blocks of keys, for 168 places


def efficient():
    operands = [by_rows(2, 4, 100, 64, "float32")] * 3
    sizes = sdpa.Sizes(case(operands, mask=Tensor((100, 100), "bool")), EFFICIENT)
    equal((sizes.out, sizes.kept), (2 * 4 * 100 * 64 * 4, [100 * 104 * 4, 2 * 4 * 128 * 4]))
    equal(sdpa.Sizes(case(operands, mask=Tensor((100, 104), "float32"), gradients=False), EFFICIENT).kept, [])
    workspace = 2 * 4 * 2 * 1 * (64 * 64 + 4) * 4
    equal(sizes.backward(operands[0], operands[0]), [2 * 4 * 100 * 4, max(2 * 4 * 100 * 65 * 4, 2 * 4 * 100 * 4 + workspace)])
    halves = [by_rows(2, 4, 100, 128, "float16")] * 3
    sizes = sdpa.Sizes(case(halves, dropout=0.1), EFFICIENT)  # tiles of 64 x 64, whose sums exceed the registers
    equal(sizes.backward(halves[0], halves[0])[1], 2 * 4 * (2 * 64 * 256 + 2 * 2 * (64 * 64 + 4)) * 4)
    sizes = sdpa.Sizes(case(halves, capability=(8, 0)), EFFICIENT)  # of 128 x 128
    equal(sizes.backward(halves[0], halves[0])[1], 2 * 4 * (128 * 128 + 4) * 4)


kernels()
flash()
efficient()
