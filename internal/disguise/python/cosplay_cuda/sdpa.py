"""Which kernel CUDA runs for scaled_dot_product_attention, and the memory that it takes: PyTorch's rules by version and compute
capability. Sizes are in bytes."""

MATH, FLASH, EFFICIENT, CUDNN = 0, 1, 2, 3  # PyTorch's numbers
HALVES = ("torch.float16", "torch.bfloat16")
FLOAT = 4


def up(size, step):
    return -(-size // step) * step


def parts(size, step):
    return -(-size // step)


class Case:
    """A call. enabled has the kernels that the program permits, in the order in which PyTorch tries them."""

    def __init__(self, version, capability, sms, enabled, operands, mask, dropout, causal, gqa, gradients, deterministic=False):
        self.version, self.capability, self.sms, self.enabled = version, capability, sms, enabled
        self.q, self.k, self.v = operands
        self.mask, self.dropout, self.causal, self.gqa, self.gradients, self.deterministic = mask, dropout, causal, gqa, gradients, deterministic
        self.batch, self.heads, self.rows, self.depth = self.q.size()
        self.columns, self.depth_v = self.k.size(2), self.v.size(3)
        self.dtype, self.item = str(self.q.dtype), self.q.element_size()
        self.highest = (9, 0) if version < (2, 7) else (12, 1)

    def kernel(self):
        """The first that can run; None if the program permits none that can."""
        order = self.enabled
        prefers = self.version >= (2, 10) and self.capability in ((9, 0), (10, 0), (10, 3))
        if prefers and order[:1] == [FLASH] and CUDNN in order:
            order = [CUDNN] + [kind for kind in order if kind != CUDNN]
        can = {MATH: lambda: True, FLASH: self.can_flash, EFFICIENT: self.can_efficient, CUDNN: self.can_cudnn}
        return next((kind for kind in order if kind in can and can[kind]()), None)

    def same(self, grouped):
        """Whether the operands have the same type and batch, and heads that the kernel takes."""
        q, k, v = self.q, self.k, self.v
        if not (q.dtype == k.dtype == v.dtype and q.size(0) == k.size(0) == v.size(0) and self.rows and self.columns):
            return False
        if grouped and self.gqa:
            return k.size(1) == v.size(1) and self.heads % k.size(1) == 0
        return self.heads == k.size(1) == v.size(1)

    def dense(self, *more):
        return all(tensor.stride(-1) == 1 for tensor in (self.q, self.k, self.v) + more)

    def halves(self):
        return self.dtype in HALVES[:2 if self.capability >= (8, 0) else 1]

    def can_flash(self):
        trains = self.gradients and ((8, 6) <= self.capability <= (8, 9) or self.version >= (2, 7) and self.capability >= (12, 0))
        return (self.mask is None and self.depth == self.k.size(3) == self.depth_v <= 256 and (8, 0) <= self.capability <= self.highest
                and not (trains and (192 < self.depth <= 224 or self.depth > 224 and self.dropout > 0))
                and not (self.causal and self.rows != self.columns) and self.halves() and self.same(True) and (self.dense() or self.depth == 1))

    def can_efficient(self):
        half, major = self.dtype in HALVES, self.capability[0]
        step = 4 if major >= 8 else 1
        if major >= 8 or major == 7 and half:  # tensor cores read 16 bytes
            step = max(step, 8 if half else 4)
        masks = () if self.mask is None else (self.mask,)
        return ((5, 0) <= self.capability <= self.highest and self.depth == self.k.size(3) and self.depth % step == self.depth_v % step == 0
                and self.depth and self.depth_v and self.dense(*masks) and self.same(self.version >= (2, 14))
                and (self.halves() or self.dtype in ("torch.float32", "torch.float16")))

    def can_cudnn(self):
        limit = 128
        if self.version >= (2, 9):
            limit = 256 if self.capability == (9, 0) else 192 if self.capability[0] == 10 and (self.depth, self.depth_v) == (192, 128) else 128
        short = self.columns == 1 or self.rows == 1 and (self.dropout > 0 or self.version < (2, 9))
        if self.mask is not None and (self.mask.requires_grad or self.mask.dim() not in (2, 4)):
            return False
        return ((8, 0) <= self.capability <= self.highest and self.halves() and self.same(True) and self.dense() and not short
                and max(self.depth, self.depth_v) <= limit and self.depth % 8 == self.depth_v % 8 == 0 and not self.deterministic)


class Sizes:
    """What a call takes beside the operands. out is the result; kept lives until the backward pass if there is one; while lives
    as long as the kernel. by_position tells of the result and of each gradient whether the positions of a head lie apart in memory."""

    def __init__(self, case, kind):
        self.case, self.kind = case, kind
        self.out = case.batch * case.heads * case.rows * case.depth_v * case.item
        self.kept, self.whilst = [], []
        self.by_position = [by_position(tensor) for tensor in (case.q, case.q, case.k, case.v)]
        {MATH: self.math, FLASH: self.flash, EFFICIENT: self.efficient, CUDNN: self.cudnn}[kind]()
        self.gradients = [tensor.numel() * tensor.element_size() for tensor in (case.q, case.k, case.v)]
        self.grouped = case.k.size(1) != case.heads
        case.q = case.k = case.v = case.mask = None  # the sizes live as long as the graph, also after the backward pass

    def each(self, width):
        """A number of float32 for each position of each head."""
        case = self.case
        return case.batch * case.heads * case.rows * width * FLOAT

    def bias(self):
        """CUDA adds a mask of bool as numbers, with rows of a multiple of 8."""
        case, mask = self.case, self.case.mask
        if mask is None:
            return
        padded = any(step % 8 for step in mask.stride()[:-1])
        if str(mask.dtype) == "torch.bool":
            shape = list(mask.size())
            padded = shape[-1] % 8 and self.kind == EFFICIENT
        if padded or str(mask.dtype) == "torch.bool":
            length = mask.size(-1)
            self.kept.append(mask.numel() // max(1, length) * (up(length, 8) if padded else length) * case.item)

    def flash(self):
        case = self.case
        if case.depth % 8:  # copies with heads of a multiple of 8 numbers
            width = up(case.depth, 8)
            self.kept += [tensor.numel() // case.depth * width * case.item for tensor in (case.q, case.k, case.v)]
            self.out, self.by_position = self.out // case.depth * width, [False] * 4
        self.kept.append(self.each(1))
        splits = self.splits()
        if splits > 1:
            self.whilst += [splits * self.each(1), splits * self.each(up(case.depth, 32))]

    def splits(self):
        """Into how many parts flash attention divides the keys, to keep all multiprocessors busy."""
        case = self.case
        if case.dropout > 0:
            return 1
        width = up(case.depth, 8)
        blocks = parts(case.columns, 256 if width <= 64 else 128 if width <= 128 else 64)
        work, places = case.batch * case.heads * parts(case.rows, 64), case.sms * 2
        if work >= 0.8 * places:
            return 1
        rated = {}
        for splits in range(1, min(128, places, blocks) + 1):
            if splits == 1 or parts(blocks, splits) != parts(blocks, splits - 1):
                waves = work * splits / float(places)
                rated[splits] = waves / parts(work * splits, places)
        return min((splits for splits, rate in rated.items() if rate >= 0.85 * max(rated.values())), default=1)

    def efficient(self):
        case = self.case
        self.by_position = [True] * 4
        self.bias()
        if case.gradients:
            self.kept.append(case.batch * case.heads * up(case.rows, 32) * FLOAT)
        if case.item < FLOAT and case.depth_v > 128:
            self.whilst.append(self.each(case.depth_v))

    def cudnn(self):
        self.bias()
        if self.case.gradients:
            self.kept.append(self.each(1))

    def math(self):
        """The CPU runs one kernel where CUDA runs many: scaled operands in float32, and the weights."""
        case = self.case
        item = max(case.item, FLOAT)
        weights = case.batch * case.heads * case.rows * case.columns
        self.kept += [tensor.numel() * item for tensor in (case.q, case.k) + ((case.v,) if item > case.item else ())] + [weights * item]
        self.whilst += [weights * item, weights]
        self.by_position = [False] * 4

    def backward(self, gradient, out):
        """What the backward pass takes for its time, beside the three gradients."""
        case = self.case
        if self.kind == MATH:
            weights = case.batch * case.heads * case.rows * case.columns * max(case.item, FLOAT)
            return [weights, weights]
        if self.kind == CUDNN:
            # Measured on an H100: the gradient of the queries in float32, and a number for each row.
            return ([gradient.numel() * case.item] if gradient.stride(-1) != 1 else []) + [self.each(1), self.each(case.depth)]
        # A gradient that has the result's layout has it on CUDA, too.
        there = gradient.transpose(1, 2).is_contiguous() or self.by_position[0] and gradient.stride() == out.stride()
        taken = [] if there else [gradient.numel() * case.item]
        return taken + (self.flash_backward() if self.kind == FLASH else self.efficient_backward())

    def flash_backward(self):
        case = self.case
        taken = [] if self.by_position[0] else [self.out]
        positions = case.batch * case.heads * up(case.rows, 128) * FLOAT
        copies = parts(case.sms, case.batch * case.heads) if case.deterministic else 1
        taken += [positions, copies * positions * up(case.depth, 32)]
        if self.grouped:
            taken += [case.batch * case.columns * case.heads * up(case.depth, 8) * case.item] * 2
        return taken

    def efficient_backward(self):
        """CUTLASS' kernel: tiles of rows by columns, and numbers that it adds up in float32 where they exceed the registers."""
        case = self.case
        half, depth = case.item < FLOAT, max(case.depth, case.depth_v)
        high, wide, registers = self.tile(half, depth)
        splits = parts(case.columns, wide)
        if case.batch * case.heads >= 256 and case.columns <= 2 * wide:
            splits = 1
        sums = half and not registers
        if sums:
            splits = min(splits, 200 // (case.batch * case.heads))
        if case.capability < (7, 0) or splits < 1 or case.deterministic:
            splits = 1
        numbers = splits * wide * (up(case.depth, high) + up(case.depth_v, high)) if sums else 0
        if case.capability >= (7, 0) or half:
            numbers += parts(case.rows, high) * parts(case.depth, wide) * (high * wide + 4)
        workspace = case.batch * case.heads * up(numbers, 4) * FLOAT
        if half:
            return [self.each(1), workspace]
        return [self.each(1), max(self.each(case.depth_v) + self.each(1), self.each(1) + workspace)]

    def tile(self, half, depth):
        """Rows, columns, and whether all sums are in registers. Where a kernel needs more shared memory than the GPU has, the next one runs."""
        large = self.case.capability in ((8, 0), (9, 0), (10, 0), (10, 3))
        if depth <= 64:
            return 64, 64, half
        if half and self.case.capability >= (8, 0):
            if depth <= 96 and self.case.capability in ((8, 6), (8, 9)) and not self.case.dropout:
                return 128, 64, True
            if depth <= 128 and large:
                return 128, 128, True
        return 128 if large else 64, 64, False


def by_position(tensor):
    """Whether all heads of a position lie together in memory, as in the result of a linear layer that is divided into heads."""
    steps = [step for length, step in zip(tensor.size(), tensor.stride()) if length > 1]
    (batch, heads, rows, depth), (b, h, r, d) = tensor.size(), tensor.stride()
    return (heads == 1 or rows == 1 or r > h) and (batch == 1 or b == max(steps))
