"""A second account of PyTorch's caching allocator, by its documented rules, for comparison. It runs with plain PyTorch on the
CPU: Watch sees the memory of each tensor come and go, and Rules places it. It shares no code with cosplay."""
import os

import torch
from torch.utils._python_dispatch import TorchDispatchMode

KIB, MIB = 1 << 10, 1 << 20


class OutOfMemory(Exception):
    pass


def up(size, step):
    return (size + step - 1) // step * step


class Rules:
    """Segments of the driver; in each, the places that are taken, by their start. All else is free."""

    def __init__(self, capacity, options=""):
        self.capacity, self.segments, self.made = capacity, {}, 0
        self.peak_allocated = self.peak_reserved = self.retries = 0
        given = dict(option.split(":") for option in options.split(",") if option)
        self.unsplit = int(given.get("max_split_size_mb", 1 << 40)) * MIB
        self.divisions = int(given.get("roundup_power2_divisions", 0))

    def rounded(self, size):
        if self.divisions > 1 and size > 512 * self.divisions:
            power = 1
            while power * 2 <= size:
                power *= 2
            return size if size == power else power + up(size - power, power // self.divisions)
        return max(512, up(size, 512))

    def reserved(self):
        return sum(size for size, _, _ in self.segments.values())

    def allocated(self):
        return sum(sum(taken.values()) for _, _, taken in self.segments.values())

    def gaps(self, small):
        """The free places as (length, segment, start)."""
        for number, (size, of_small, taken) in self.segments.items():
            if of_small == small:
                at = 0
                for start in sorted(taken):
                    if start > at:
                        yield start - at, number, at
                    at = start + taken[start]
                if size > at:
                    yield size - at, number, at

    def place(self, size, small):
        """Takes the smallest free place that is large enough."""
        fitting = [gap for gap in self.gaps(small) if gap[0] >= size]
        if not fitting:
            return None
        length, number, start = min(fitting)
        if size < self.unsplit <= length or size >= self.unsplit and length >= size + 20 * MIB:
            return None
        rest = length - size
        if not (rest >= 512 if small else rest > MIB and size < self.unsplit):
            size = length
        self.segments[number][2][start] = size
        return number, start

    def extend(self, size, small):
        wanted = 2 * MIB if small else 20 * MIB if size < 10 * MIB else up(size, 2 * MIB)
        if self.reserved() + wanted > self.capacity:
            return False
        self.made += 1
        self.segments[self.made] = wanted, small, {}
        self.peak_reserved = max(self.peak_reserved, self.reserved())
        return True

    def drop_oversize(self, size, small):
        """Before all else that is cached, segments that no smaller request may use are returned: one, or the largest."""
        large = sorted(gap for gap in self.gaps(small) if gap[0] >= self.unsplit)
        wanted = max(size, self.unsplit)
        enough = [gap for gap in large if gap[0] >= wanted]
        if enough:
            del self.segments[enough[0][1]]
            return True
        dropped = 0
        while large and dropped < wanted:
            length, number, _ = large.pop()
            dropped += length
            del self.segments[number]
        return dropped >= wanted

    def drop_all(self):
        self.segments = {number: segment for number, segment in self.segments.items() if segment[2]}

    def allocate(self, size):
        size = self.rounded(size)
        small = size <= MIB
        found = self.place(size, small)
        if found is None and not self.extend(size, small):
            if not (self.drop_oversize(size, small) and self.extend(size, small)):
                self.retries += 1
                self.drop_all()
                if not self.extend(size, small):
                    raise OutOfMemory()
        found = found or self.place(size, small)
        self.peak_allocated = max(self.peak_allocated, self.allocated())
        return found

    def release(self, place):
        del self.segments[place[0]][2][place[1]]


# cuBLAS' workspaces before Hopper: PyTorch allocates one in the forward and one in the backward pass, from 2.0 on. cuBLASLt adds a
# bias, and has one for each call before 2.9.
PRODUCTS, WORKSPACE, WORKSPACE_LT = ("mm", "bmm", "addmm", "baddbmm", "addmv", "dot"), 8320 * KIB, 1024 * KIB
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


class Watch(TorchDispatchMode):
    """Allocates and releases by the rules what PyTorch does on the CPU."""

    OutOfMemoryError = OutOfMemory

    def __init__(self, capacity):
        TorchDispatchMode.__init__(self)
        self.capacity, self.live = capacity, {}
        self.waiting = None  # the storage of an empty_like, before the next operation says whether it is the mask of a dropout
        self.start()

    def start(self):
        self.collect()
        self.rules = Rules(self.capacity, os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))
        self.workspaces = set()

    def collect(self):
        if self.waiting:
            self.settle()
        for key in [key for key in self.live if torch.UntypedStorage._expired(key)]:
            torch.UntypedStorage._free_weak_ref(key)
            place = self.live.pop(key)
            if place:
                self.rules.release(place)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.split("::")[1]
        if self.waiting:
            self.settle(args[0].numel() if name == "bernoulli_" else None)  # CUDA's mask has a byte for each number
        result = function(*args, **(kwargs or {}))
        self.collect()
        marks = function._schema.name.startswith("profiler::")  # of an optimizer's step: a tensor of the host
        host = marks or all(value.alias_info is not None for value in function._schema.returns)  # made elsewhere, on the host
        for tensor in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()
                if storage._cdata not in self.live:
                    if name == "empty_like" and storage.nbytes():
                        self.waiting = storage._weak_ref(), storage.nbytes()
                        continue
                    place = self.rules.allocate(storage.nbytes()) if storage.nbytes() and not host else None
                    self.live[storage._weak_ref()] = place
                elif marks and self.live[storage._cdata]:
                    self.rules.release(self.live[storage._cdata])
                    self.live[storage._cdata] = None
        if name in PRODUCTS:
            self.multiply(args)
        if name == "_softmax_backward_data":  # CUDA's kernel takes the product of the gradient and the result
            self.rules.release(self.rules.allocate(args[1].numel() * args[1].element_size()))
        return result

    def settle(self, size=None):
        (key, bytes), self.waiting = self.waiting, None
        self.live[key] = self.rules.allocate(size or bytes)

    def multiply(self, args):
        bias = len(args) == 3 and args[0].dim() == 1 and min(args[2].shape) > 1 and VERSION < (2, 9)
        kept = [self.rules.allocate(WORKSPACE_LT)] if bias else []
        # cuBLAS reads matrices by rows or by columns, and a copy of all others.
        kept += [self.rules.allocate(part.numel() * part.element_size()) for part in args if part.dim() == 2 and 1 not in part.stride()]
        if VERSION >= (2, 0):
            backward = torch._C._current_graph_task_id() != -1
            if backward not in self.workspaces:
                self.workspaces.add(backward)
                self.rules.allocate(WORKSPACE)
        for place in kept:
            self.rules.release(place)

    def empty_cache(self):
        self.collect()
        self.rules.drop_all()

    def figures(self):
        self.collect()
        rules = self.rules
        return rules.peak_allocated, rules.peak_reserved, rules.allocated(), rules.reserved(), rules.retries
