"""Blocks that the program has released and that other streams still use: they are active, neither allocated nor free."""


class Waiting(dict):
    """When each such block was released. It is false as long as there is none."""

    def __init__(self, allocator, progress):
        dict.__init__(self)
        self.allocator, self.progress = allocator, progress  # progress says which blocks no stream uses any more
        self.highest = {}  # the peaks of active blocks and bytes: of the small pool, of the large one, and of both, by True, False and None

    def add(self, block):
        count = block.pool.count
        count.allocation.now -= 1
        count.allocated_bytes.now -= block.size
        self[block], block.uses = self.progress.moments(block.uses), None
        self.note()

    def settle(self, passed=None):
        """Frees the blocks whose streams have passed."""
        passed = passed or self.progress.passed
        for block in [block for block, moments in self.items() if passed(moments)]:
            del self[block]
            count = block.pool.count
            count.allocation.now += 1
            count.allocated_bytes.now += block.size
            self.allocator._free(block)

    def amounts(self, small):
        """How many blocks wait and their bytes."""
        sizes = [block.size for block in self if small in (None, block.pool.small)]
        return len(sizes), sum(sizes)

    def note(self):
        """Notes the peaks of what is allocated or waits."""
        for small, counts in ((True, self.allocator.small), (False, self.allocator.large), (None, self.allocator.all)):
            blocks, bytes = self.amounts(small)
            known = self.highest.get(small, (0, 0))
            self.highest[small] = max(known[0], counts.allocation.now + blocks), max(known[1], counts.allocated_bytes.now + bytes)

    def reset_peaks(self):
        self.highest = {}
        if self:
            self.note()

    def stat(self, result, label, small):
        """Adds the blocks to a quantity of PyTorch's statistics."""
        at = 1 if label.startswith("active_bytes") else 0
        amount = self.amounts(small)[at]
        result[label + ".current"] += amount
        result[label + ".freed"] -= amount
        result[label + ".peak"] = max(result[label + ".peak"], self.highest.get(small, (0, 0))[at])
