"""The quantities that a caching allocator counts, by PyTorch's names."""


class Counter:
    """A quantity: now, its peak, and the sum of all increases. Decreases are subtracted from now."""

    __slots__ = ("now", "peak", "total", "other", "both")

    def __init__(self):
        self.now = self.peak = self.total = 0
        self.other = self.both = None

    def add(self, amount):
        self.total += amount
        now = self.now = self.now + amount
        if now > self.peak:
            self.peak = now
        if self.both is not None and now + self.other.now > self.both.peak:
            self.both.peak = now + self.other.now


class Both:
    """A quantity of both pools: their sum, which is only added up when it is read, and its own peak."""

    __slots__ = ("one", "other", "peak")

    def __init__(self, one, other):
        self.one, self.other, self.peak = one, other, 0
        one.both = other.both = self
        one.other, other.other = other, one

    now = property(lambda self: self.one.now + self.other.now)
    total = property(lambda self: self.one.total + self.other.total)


QUANTITIES = ("allocation", "segment", "inactive_split", "allocated_bytes", "reserved_bytes", "inactive_split_bytes", "requested_bytes")


class Counts:
    """The quantities of one pool, or of both if they are given."""

    __slots__ = QUANTITIES

    def __init__(self, *pools):
        for name in QUANTITIES:
            setattr(self, name, Both(*(getattr(pool, name) for pool in pools)) if pools else Counter())


ACTIVE = {"allocation": "active", "allocated_bytes": "active_bytes"}


def put(result, label, counter):
    result[label + ".current"] = counter.now
    result[label + ".peak"] = counter.peak
    result[label + ".allocated"] = counter.total
    result[label + ".freed"] = counter.total - counter.now
