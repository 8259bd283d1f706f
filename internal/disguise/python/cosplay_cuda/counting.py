"""What a program does on its devices: operations, bytes that are copied, and collectives."""
from . import flops, signals


class Tally:
    """The counts of one thread, which changes them without a lock."""

    __slots__ = ("launches", "flops", "least")

    def __init__(self, launches=0, flops=0, least=()):
        self.launches, self.flops = launches, flops
        self.least = dict(least)  # the floating point operations that no algorithm avoids, by number format

    def copy(self):
        return Tally(self.launches, self.flops, self.least)

    def add(self, other, sign=1):
        self.launches += sign * other.launches
        self.flops += sign * other.flops
        for format, amount in list(other.least.items()):
            self.least[format] = self.least.get(format, 0) + sign * amount

    def product(self, format, amount, least):
        self.flops += amount
        self.least[format] = self.least.get(format, 0) + least


class Counters:
    """The counts of the program. Bytes are those of a copy's result."""

    def __init__(self, tracing=lambda: None):
        self.progress = lambda: None  # called now and then while the program computes
        # Not None while torch.jit.trace runs: a size that is read then is a tensor, and becomes a part of the traced code.
        self.tracing = tracing
        self.tallies = []
        self.follower = None  # follows each copy to the host, once the program records streams for tensors
        self.begun = lambda: None  # called at each product and convolution until the program computes
        self.forget()

    def forget(self):
        """Starts again from 0, as a child of the program does."""
        self.lock, self.ended = signals.Lock(), Tally()
        for tally in self.tallies:
            tally.__init__()
        self.steps, self.step, self.before = 0, None, (Tally(), 0)  # how many optimizer steps; the least one, and what was counted before it
        self.to_device = self.to_host = self.between = 0
        self.collectives = {}  # [count, bytes] by kind
        self.rank = None  # of the program in its process group, also after it has left it

    def join(self):
        """The tally of a thread that starts."""
        tally = Tally()
        with self.lock:
            self.tallies.append(tally)
        return tally

    def leave(self, tally):
        """Adds the tally of a thread that ends to those of the others that ended."""
        with self.lock:
            if tally in self.tallies:
                self.tallies.remove(tally)
                self.ended.add(tally)

    def total(self, name):
        with self.lock:
            return sum(getattr(tally, name) for tally in self.tallies + [self.ended])

    def whole(self):
        """The sums of all threads."""
        result = Tally()
        with self.lock:
            for tally in self.tallies + [self.ended]:
                result.add(tally)
        return result

    def compute(self):
        """Leaves out of the first step what the program has done to load its model."""
        self.before = self.whole(), self.to_device

    def stepped(self):
        """Ends a training step. Of all steps the one that takes least is kept: others also load, or evaluate."""
        now, sent = self.whole(), self.to_device
        taken, before = now.copy(), self.before
        taken.add(before[0], -1)
        self.steps, self.before = self.steps + 1, (now, sent)
        if self.step is None or (taken.flops, sent - before[1]) < (self.step[0].flops, self.step[1]):
            self.step = taken, sent - before[1]

    def copied(self, source, target, tensor):
        if self.tracing() is None:
            try:
                size = tensor.numel() * tensor.element_size()
            except ValueError:
                return  # the parameter of a lazy module, which has no size yet
            self.moved(source, target, size)

    def moved(self, source, target, size):
        with self.lock:
            if source < 0 <= target:
                self.to_device += size
            elif target < 0 <= source:
                self.to_host += size
            elif source != target:
                self.between += size
        if self.follower is not None and target < 0 <= source:
            self.follower.wait_for_stream(source)

    def collective(self, kind, size):
        with self.lock:
            counts = self.collectives.setdefault(kind, [0, 0])
            counts[0] += 1
            counts[1] += size


# Operations that write no memory of a device, though their schema says that they return or change a tensor.
NOTHING = frozenset((
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "_unsafe_view", "_reshape_alias", "resize_", "set_",
    "detach_", "squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "as_strided_", "rename_", "record_stream",
))

# Kinds of collectives, by the names of PyTorch's operations without underscores and without what says how they pass tensors.
KINDS = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter", "alltoall": "all_to_all", "broadcast": "broadcast",
         "reduce": "reduce", "gather": "gather", "scatter": "scatter", "send": "send", "recv": "recv", "barrier": "barrier"}
VARIANTS = ("coalesced", "intotensor", "tensor", "base", "anysource", "single", "outofplace", "out")
GIVEN_SECOND = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")  # their first argument is the result


def writes(schema, name):
    """Whether an operation writes memory: it is none that returns a view or allocates."""
    if name in NOTHING:
        return False
    returns = [r for r in schema.returns if "Tensor" in str(r.type)]
    if any(r.alias_info is None for r in returns):
        return True
    return any(part.alias_info is not None and part.alias_info.is_write for part in list(schema.arguments) + returns)


def kind_of(schema_name):
    """The kind of collective of c10d::_allgather_base_ or _c10d_functional::all_reduce; None if it is none."""
    space, _, name = schema_name.partition("::")
    if space not in ("c10d", "_c10d_functional"):
        return None
    name = name.replace("_", "")
    while name not in KINDS:
        shorter = next((name[:-len(end)] for end in VARIANTS if name.endswith(end)), None)
        if shorter is None:
            return None
        name = shorter
    return KINDS[name]


def counter_of(func, counters, torch):
    """A function that counts a call beside its launch, as (tally, device, args, kwargs, result); None for most operations."""
    schema = func._schema
    name = schema.name.split("::")[1]
    kind = kind_of(schema.name)
    if kind is not None:
        functional = schema.name.startswith("_c10d_functional")

        def count(tally, device, args, kwargs, result):
            if counters.tracing() is not None:
                return
            given = args[1 if kind in GIVEN_SECOND and not functional else 0] if args else ()
            counters.collective(kind, 0 if kind == "barrier" else bytes_of(given, torch.Tensor))

        return count
    if name == "_local_scalar_dense":

        def count(tally, device, args, kwargs, result):
            if device >= 0:
                counters.moved(device, -1, args[0].element_size())

        return count
    rule = flops.RULES.get(name) if schema.name.startswith("aten::") else None
    if rule is None:
        return None
    names = [a.name for a in schema.arguments]
    convolves, recurs = "convolution" in name, "rnn" in name
    least_of = flops.LEAST.get(name)

    def count(tally, device, args, kwargs, result):
        if device >= 0 and counters.tracing() is None:
            if kwargs:  # operands by name
                args = args + tuple(kwargs.get(n) for n in names[len(args):])
            if counters.begun is not None:
                counters.begun()
            amount = rule(args, result)
            tally.product(flops.format_of(torch, args[0].dtype, convolves or recurs), amount, least_of(args, result) if convolves else amount)

    return count


def bytes_of(value, kind):
    """The bytes of a tensor, or of all in lists."""
    if isinstance(value, kind):
        return value.numel() * value.element_size()
    return sum(bytes_of(part, kind) for part in value) if isinstance(value, (list, tuple)) else 0
