"""The rules of the caching allocator against a second, simple account of them: lists of blocks that are searched in full."""
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, "python")
from cosplay_cuda import allocator, settings, storages

MIB = 1 << 20


class Reference:
    """Segments as lists of [size, owner]; owner is None for free blocks."""

    def __init__(self, capacity):
        self.capacity, self.segments, self.peak = capacity, [], 0

    def reserved(self):
        return sum(size for small, stream, blocks in self.segments for size, _ in blocks)

    def allocated(self):
        return sum(size for _, _, blocks in self.segments for size, owner in blocks if owner is not None)

    def find(self, size, small, stream):
        fitting = [(block[0], i, j) for i, (s, st, blocks) in enumerate(self.segments) if s == small and st == stream
                   for j, block in enumerate(blocks) if block[1] is None and block[0] >= size]
        return min(fitting) if fitting else None

    def allocate(self, request, stream, owner):
        size = max(512, (request + 511) // 512 * 512)
        small = size <= MIB
        found = self.find(size, small, stream)
        if found is None:
            segment = 2 * MIB if small else 20 * MIB if size < 10 * MIB else (size + 2 * MIB - 1) // (2 * MIB) * (2 * MIB)
            if self.reserved() + segment > self.capacity:
                self.empty()
            if self.reserved() + segment > self.capacity:
                return False
            self.segments.append((small, stream, [[segment, None]]))
            found = (segment, len(self.segments) - 1, 0)
        _, i, j = found
        blocks = self.segments[i][2]
        rest = blocks[j][0] - size
        if rest >= 512 if small else rest > MIB:
            blocks[j:j + 1] = [[size, owner], [rest, None]]
        else:
            blocks[j][1] = owner
        self.peak = max(self.peak, self.allocated())
        return True

    def free(self, owner):
        for _, _, blocks in self.segments:
            for block in blocks:
                if block[1] == owner:
                    block[1] = None
            merged = []
            for block in blocks:
                if merged and merged[-1][1] is None and block[1] is None:
                    merged[-1][0] += block[0]
                else:
                    merged.append(block)
            blocks[:] = merged

    def empty(self):
        self.segments = [s for s in self.segments if not (len(s[2]) == 1 and s[2][0][1] is None)]


def compare(seed):
    chance = random.Random(seed)
    capacity = chance.choice([64, 200, 1000]) * MIB
    left = [capacity]
    handles = iter(range(1, 1 << 30))
    sizes = {}

    def take(size):
        if size > left[0]:
            return None
        left[0] -= size
        handle = next(handles)
        sizes[handle] = size
        return handle

    def give(handle):
        left[0] += sizes.pop(handle)

    subject, reference, live = allocator.Allocator(take, give), Reference(capacity), {}
    for step in range(400):
        what = chance.random()
        if what < 0.55:
            request = int(2 ** chance.uniform(0, 25))
            stream = chance.choice([0, 0, 0, 1])
            try:
                live[step] = subject.allocate(request, stream)
                fits = True
            except allocator.OutOfMemory:
                fits = False
            assert reference.allocate(request, stream, step) == fits, (seed, step, request)
        elif what < 0.97 and live:
            owner = chance.choice(sorted(live))
            subject.release(live.pop(owner))
            reference.free(owner)
        elif what > 0.98:
            subject.empty_cache()
            reference.empty()
        counts = subject.counts()
        figures = counts.allocated_bytes.now, counts.reserved_bytes.now, counts.allocated_bytes.peak, counts.segment.now
        assert figures == (reference.allocated(), reference.reserved(), reference.peak, len(reference.segments)), (seed, step, figures)
        assert capacity - left[0] == counts.reserved_bytes.now
        if step % 40 == 0:
            blocks = [[size for _, size, _, _ in of] for _, of in subject.layout()]
            assert blocks == [[size for size, _ in of] for _, _, of in reference.segments], (seed, step)


for seed in range(60):
    compare(seed)

class Storage:
    """The storages of an old PyTorch, which only say whether they live, by their address."""

    asked, live = 0, set()
    _storage = untyped_storage = None

    def __init__(self, number):
        self._cdata = number
        self.live.add(number)

    def _weak_ref(self):
        return self._cdata

    @classmethod
    def _expired(cls, number):
        cls.asked += 1
        return number not in cls.live

    @staticmethod
    def _free_weak_ref(number):
        pass


class Torch:
    UntypedStorage = Storage

    class _C:
        _TensorBase, _has_storage = Storage, None


for count in 1000, 5000, 20000:
    table, Storage.live, Storage.asked = storages.ByTable(Torch), set(), 0
    for number in range(count):
        table.put(Storage(number), storages.Tag(0))
        table.settle(False)
    assert Storage.asked <= 1100 * count, (count, Storage.asked)
    for number in random.Random(1).sample(range(count), count // 2):
        Storage.live.remove(number)
    table.settle(True)
    assert set(table.tags) == Storage.live
    Storage.live = set()
    for _ in range(2 * count // storages.ByTable.SOME + 1):
        table.settle(False)
    assert not table.tags and not table.new and not table.old, count

left, handles = [10 * MIB], iter(range(1, 1 << 30))


def take(size):
    if size > left[0]:
        return None
    left[0] -= size
    return next(handles)


def give(handle):
    left[0] += 2 * MIB


# Memory of a private pool stays with its users, and serves no one else. In a capture the cache is not emptied.
state = allocator.Allocator(take, give)
state.retain("graph")
state.retain("graph")
block = state.allocate(MIB, (1, "graph"))
state.release(block)
other = state.allocate(MIB, 1)
assert block.pool.owner == "graph" and state.allocate(MIB, (1, "graph")) is block and other.segment is not block.segment and left[0] == 6 * MIB
state.release(block)
state.release(other)
state.release_pool("graph")
state.empty_cache()
assert left[0] == 8 * MIB and state.in_private_pools() == 2 * MIB
state.release_pool("graph")
cached = state.allocate(512, 2)
state.release(cached)
state.captures = 1
try:
    state.allocate(8 * MIB)
    sys.exit("a capture empties the cache")
except allocator.OutOfMemory:
    pass
state.captures = 0
state.empty_cache()
assert left[0] == 10 * MIB and not state.private and all(pool.owner is None for pool in state.pools.values())



class Progress:
    """Streams have passed when the test says so."""
    reached = False

    def moments(self, uses):
        return uses

    def passed(self, moments):
        return self.reached


# A block that another stream uses is active, and not free, until the stream has passed or there is no other memory.
left[0] = 6 * MIB
state = allocator.Allocator(take, give, progress=Progress())
block = state.allocate(MIB)
block.uses = frozenset([(0, 7)])
state.release(block)
other = state.allocate(MIB)
found = state.stats()
assert other is not block and found["allocated_bytes.all.current"] == MIB and found["active_bytes.all.current"] == found["active_bytes.all.peak"] == 2 * MIB
assert found["active.small_pool.current"] == 2 and found["active.large_pool.current"] == 0
Progress.reached = True
assert state.allocate(MIB) is block and state.stats()["active_bytes.all.current"] == 2 * MIB
Progress.reached = False
block.uses = frozenset([(0, 7)])
state.release(block)
state.release(other)
try:
    state.allocate(20 * MIB)
except allocator.OutOfMemory:
    pass
assert left[0] == 6 * MIB and state.stats()["num_sync_all_streams"] == 1 and not state.waiting

given = settings.Settings("max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4],garbage_collection_threshold:0.8")
assert given.max_split == 128 * MIB and given.threshold == 0.8
assert settings.Settings("roundup_power2_divisions:4").rounded(1200) == 1536
assert settings.Settings("roundup_power2_divisions:4").rounded(1100 * 1024) == 1280 * 1024
assert settings.Settings().rounded(1) == 512 and settings.Settings().rounded(513) == 1024
for wrong in "max_split_size_mb:20", "garbage_collection_threshold:2":
    try:
        settings.Settings(wrong)
    except ValueError:
        continue
    sys.exit("%s is accepted" % wrong)
