"""The rules by which PyTorch's caching allocator takes memory from CUDA. Neither PyTorch nor a driver is needed
here: a test runs it alone.

A request is rounded up to 512 bytes and served from a block: the smallest free one of its stream and pool that is large
enough, split if enough remains. If there is none, a segment is requested from the driver. Blocks that become free are
merged with their neighbours and kept until empty_cache, or until the driver has no more memory."""
import bisect
import collections
import contextlib

from . import signals, waiting
from .counts import ACTIVE, QUANTITIES, Counter, Counts, put
from .errors import EXABYTE
from .settings import LARGE_SEGMENT, MIB, SMALLEST, Settings, round_up

SMALL = MIB  # the largest request that the small pool serves
SMALL_SEGMENT = 2 * MIB
LARGE_FROM = 10 * MIB  # requests from here on get a segment of their size
ROUND = 2 * MIB
# The session takes a refusal back when its process gets as much memory later. Here a refusal is an error that the program sees,
# so the request is for more than it can ever get.
NEVER = 1 << 62


class OutOfMemory(Exception):
    """The driver has no memory for a segment, and the allocator has none cached."""

    def __init__(self, requested):
        Exception.__init__(self, requested)
        self.requested = requested


def segment_size(size):
    if size <= SMALL:
        return SMALL_SEGMENT
    if size < LARGE_FROM:
        return LARGE_SEGMENT
    return round_up(size, ROUND)


class Block:
    __slots__ = ("pool", "segment", "start", "size", "before", "after", "used", "requested", "uses", "born", "place", "kind")

    def __init__(self, pool, segment, start, size, before=None, after=None):
        self.pool, self.segment, self.start, self.size = pool, segment, start, size
        self.before, self.after = before, after
        self.used = False
        self.requested = 0
        self.uses = None  # other streams that use it


class Segment:
    """Memory that the driver gave in one piece. number grows with time, as the addresses of a driver tend to."""

    __slots__ = ("number", "handle", "size", "pool", "first")

    def __init__(self, number, handle, size, pool):
        self.number, self.handle, self.size, self.pool = number, handle, size, pool
        self.first = Block(pool, self, 0, size)  # it stays the first: a block is merged into the one before it


class Pool:
    """The free blocks of a stream, of small or of large requests, by size and place. A private pool has an owner, the
    identifier by which programs name it; a stream of it is a pair (stream, owner)."""

    __slots__ = ("stream", "owner", "small", "free", "count")

    def __init__(self, stream, small, count):
        self.stream, self.owner = stream if type(stream) is tuple else (stream, None)
        self.small, self.count = small, count
        self.free = []  # (size, segment's number, start, block)

    def insert(self, block):
        bisect.insort(self.free, (block.size, block.segment.number, block.start, block))
        if block.before or block.after:
            self.count.inactive_split.add(1)
            self.count.inactive_split_bytes.add(block.size)

    def remove(self, block):
        del self.free[bisect.bisect_left(self.free, (block.size, block.segment.number, block.start))]
        self.removed(block)

    def removed(self, block):
        if block.before or block.after:
            self.count.inactive_split.now -= 1
            self.count.inactive_split_bytes.now -= block.size

    def best(self, size, max_split):
        """The smallest free block for a size, already removed; None if there is none."""
        at = bisect.bisect_left(self.free, (size,))
        if at == len(self.free):
            return None
        block = self.free[at][3]
        if max_split is not None:
            if size < max_split <= block.size:
                return None
            if size >= max_split and block.size >= size + LARGE_SEGMENT:
                return None
        del self.free[at]
        self.removed(block)
        return block


class Allocator:
    """The allocator of one device. take(size) asks the driver for memory and returns a handle, or None if the driver has
    too little; give(handle) returns it. settle(whole) is called before each decision, if releases are only known when they are asked for: whole asks for all of them.
    fits(size) tells whether to ask at all before the cache is emptied: the session counts each request that the driver
    refuses. progress says when a released block is free that other streams use."""

    def __init__(self, take, give, settings=None, settle=None, fits=lambda size: True, progress=None):
        self.take, self.give, self.fits = take, give, fits
        self.settings = settings or Settings()
        self.settle = settle
        self.small, self.large = Counts(), Counts()
        self.all = Counts(self.small, self.large)
        self.pools = {}
        self.segments = {}
        self.numbers = 0
        self.limit = None  # bytes of set_per_process_memory_fraction
        self.private = {}  # how many graphs and programs use each private pool, by its owner
        self.captures = 0  # how many graphs are being captured: until they end no cached memory is returned
        self.retries = self.failures = self.taken = self.given = 0
        self.waiting = waiting.Waiting(self, progress)  # blocks that other streams still use
        self.syncs = 0  # how often all streams were waited for
        self.origins = None  # records what allocated each block
        self.oversize = Counter()
        self.highest = [0, 0]  # the peaks of bytes allocated and reserved before the last reset of the peaks
        self.lock, self.busy = signals.Lock(), False
        self.inner = self.lock.lock
        self.later = collections.deque()  # what a finalizer asks for in the middle of a change: (tag, bytes, stream)
        # A release can happen at any place where Python runs finalizers, also within allocate. So it only notes the
        # block, and the next allocation, or the next reader of the counts, settles it.
        self.released = collections.deque()
        self.release = self.released.append

    def pool(self, size, stream):
        key = (stream, size <= SMALL)
        pool = self.pools.get(key)
        if pool is None:
            pool = self.pools[key] = Pool(stream, key[1], self.small if key[1] else self.large)
        return pool

    def allocate(self, requested, stream=0):
        """Returns a block for a number of bytes greater than 0; None in the middle of another change."""
        with self.lock if signals.main.count == 0 else self.inner:  # an operation holds handlers back already
            if self.busy:
                return None
            self.busy = True
            try:
                if self.settle:
                    self.settle(False)
                if self.released:
                    self._drain()
                if self.waiting and not self.captures:
                    self.waiting.settle()
                settings = self.settings
                size = settings.rounded(requested) if settings.divisions else requested + SMALLEST - 1 & -SMALLEST
                pool = self.pools.get((stream, size <= SMALL)) or self.pool(size, stream)
                max_split = settings.max_split
                block = pool.best(size, max_split)
                if block is None and self.settle:
                    self._settle_all()
                    block = pool.best(size, max_split)
                if block is None:
                    block = self._grow(pool, size, requested)
                rest = block.size - size
                if rest and (rest >= SMALLEST if pool.small or settings.expandable
                             else rest > SMALL and (max_split is None or size < max_split)):
                    self._split(block, size)
                block.used, block.requested = True, requested
                count = pool.count
                count.allocation.add(1)
                count.allocated_bytes.add(block.size)
                count.requested_bytes.add(requested)
                if max_split is not None and block.size >= max_split:
                    self.oversize.add(1)
                if self.waiting:
                    self.waiting.note()
                if self.origins is not None:
                    self.origins.born(block)
                return block
            finally:
                self.busy = False

    def _split(self, block, size):
        other = Block(block.pool, block.segment, block.start + size, block.size - size, block, block.after)
        if block.after:
            block.after.before = other
        block.after, block.size = other, size
        block.pool.insert(other)

    def _drain(self):
        while True:
            try:
                block = self.released.popleft()
            except IndexError:
                return
            self._free(block)

    def _free(self, block):
        if block.uses:
            self.waiting.add(block)
            return
        pool = block.pool
        count = pool.count
        count.allocation.now -= 1
        count.allocated_bytes.now -= block.size
        count.requested_bytes.now -= block.requested
        if self.settings.max_split is not None and block.size >= self.settings.max_split:
            self.oversize.now -= 1
        block.used = False
        if self.origins is not None:
            self.origins.died(block)
        before, after = block.before, block.after
        if before and not before.used:
            pool.remove(before)
            before.size += block.size
            before.after = after
            if after:
                after.before = before
            block = before
        if after and not after.used:
            pool.remove(after)
            block.size += after.size
            block.after = after.after
            if after.after:
                after.after.before = block
        pool.insert(block)

    def _grow(self, pool, size, requested):
        """A free block of a new segment."""
        if requested >= EXABYTE:
            raise OutOfMemory(requested)
        amount = segment_size(size)
        handle = self._ask(amount) if self.fits(amount) else None
        if handle is None and self._give_oversize(pool, size) and self.fits(amount):
            handle = self._ask(amount)
        if handle is None and not self.captures:
            # PyTorch returns all that it has cached, and tries once more.
            self.retries += 1
            self._empty()
            handle = self._ask(amount) if self.fits(amount) else self.take(NEVER)
            if self.origins is not None and handle is not None:
                self.origins.rescued += 1
        if handle is None:
            self.failures += 1
            raise OutOfMemory(requested)
        self.numbers += 1
        segment = Segment(self.numbers, handle, amount, pool)
        self.segments[segment.number] = segment
        self.taken += 1
        pool.count.segment.add(1)
        pool.count.reserved_bytes.add(amount)
        if self.origins is not None:
            self.origins.grew(segment)
        return segment.first

    def _ask(self, amount):
        if self.limit is not None and self.all.reserved_bytes.now + amount > self.limit:
            return None
        return self.take(amount)

    def _give_oversize(self, pool, size):
        """Returns free blocks that are too large to be split: one that is large enough, or the largest ones together.
        Reports whether they suffice."""
        least = self.settings.max_split
        if least is None:
            return False
        wanted, given = max(size, least), 0
        at = bisect.bisect_left(pool.free, (wanted,))
        if at < len(pool.free):
            self._give(pool, pool.free[at][3])
            return True
        while given < wanted and pool.free and pool.free[-1][0] >= least:
            given += pool.free[-1][0]
            self._give(pool, pool.free[-1][3])
        return given >= wanted

    def _give(self, pool, block):
        """Returns the segment of a block that fills it."""
        pool.remove(block)
        del self.segments[block.segment.number]
        self.give(block.segment.handle)
        self.given += 1
        pool.count.segment.now -= 1
        pool.count.reserved_bytes.now -= block.segment.size
        if self.origins is not None:
            self.origins.gave(block.segment)

    def _empty(self, owners=None):
        """Returns the free segments of all pools, or of the private pools of some owners. Private pools in use keep theirs."""
        if not owners:
            self.syncs += 1
            self.waiting.settle(lambda moments: True)
        for pool in self.pools.values():
            if pool.owner in owners if owners else pool.owner is None or not self.private.get(pool.owner):
                for entry in list(pool.free):
                    if not entry[3].before and not entry[3].after:
                        self._give(pool, entry[3])
        if self.private:
            self._forget_private()

    def _forget_private(self):
        """Forgets private pools that have neither a user nor memory."""
        kept = {segment.pool.owner for segment in self.segments.values()}
        for owner in [owner for owner, uses in self.private.items() if not uses and owner not in kept]:
            del self.private[owner]
            for key in [key for key, pool in self.pools.items() if pool.owner == owner]:
                del self.pools[key]

    def retain(self, owner):
        """Adds a user of a private pool. Its memory stays with it until all users have released it."""
        with self.settled():
            self.private[owner] = self.private.get(owner, 0) + 1

    def release_pool(self, owner):
        with self.settled():
            self.private[owner] -= 1

    def in_private_pools(self):
        """The bytes of free blocks in private pools, which other memory cannot use."""
        return sum(entry[0] for pool in self.pools.values() if pool.owner is not None for entry in pool.free)

    @contextlib.contextmanager
    def settled(self):
        """For readers: after all releases so far. No signal handler sees the middle of a change, nor waits for its own thread."""
        with self.lock:
            inner, self.busy = self.busy, True
            try:
                if not inner:
                    self._settle_all()
                yield not inner
            finally:
                self.busy = inner

    def empty_cache(self, *owners):
        with self.settled() as alone:
            if alone:
                self._empty(owners)

    def _settle_all(self):
        if self.settle:
            self.settle(True)
        self._drain()

    def counts(self):
        """The counts, after all releases so far."""
        with self.settled():
            return self.all

    def layout(self):
        """For each segment, its blocks in order, as (start, size, requested, used)."""
        with self.settled():
            for segment in self.segments.values():
                blocks, block = [], segment.first
                while block:
                    blocks.append((block.start, block.size, block.requested, block.used))
                    block = block.after
                yield segment, blocks

    def reset_totals(self):
        with self.settled():
            for counts in (self.small, self.large):
                for name in QUANTITIES:
                    getattr(counts, name).total = 0
            self.oversize.total = self.retries = self.failures = self.syncs = 0

    def peaks(self):
        """The peaks of bytes allocated and reserved since the program began."""
        return [max(highest, counter.peak) for highest, counter in zip(self.highest, (self.all.allocated_bytes, self.all.reserved_bytes))]

    def reset_peaks(self):
        with self.settled():
            self.highest = self.peaks()
            for counts in (self.all, self.small, self.large):
                for name in QUANTITIES:
                    counter = getattr(counts, name)
                    counter.peak = counter.now
            self.oversize.peak = self.oversize.now
            self.waiting.reset_peaks()

    def stats(self):
        """memory_stats of PyTorch, by its names."""
        with self.settled():
            result = {}
            for name, counts in (("all", self.all), ("small_pool", self.small), ("large_pool", self.large)):
                for quantity in QUANTITIES:
                    counter = getattr(counts, quantity)
                    put(result, quantity + "." + name, counter)
                    if quantity in ACTIVE:
                        put(result, ACTIVE[quantity] + "." + name, counter)
                        self.waiting.stat(result, ACTIVE[quantity] + "." + name, {"small_pool": True, "large_pool": False}.get(name))
            put(result, "oversize_allocations", self.oversize)
            put(result, "oversize_segments", Counter())
            result["max_split_size"] = -1 if self.settings.max_split is None else self.settings.max_split
            result["num_alloc_retries"] = self.retries
            result["num_ooms"] = self.failures
            result["num_sync_all_streams"] = self.syncs
            result["num_device_alloc"] = self.taken
            result["num_device_free"] = self.given
            return result
