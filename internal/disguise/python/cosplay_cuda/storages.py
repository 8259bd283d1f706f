"""Which device a storage is on, and the memory that it has there. Every tensor computes on the CPU, so the device is a
fact that is kept beside the storage, and that all of its views share."""
import operator
import threading

CPU = -1  # the index of the CPU
UNSET = -3  # no call says on which device the result is
OPEN = -2  # memory that PyTorch made for its own use: it belongs to the device of the first tensor that it meets


class Tag:
    """What is kept beside a storage. Its block is released when the storage dies."""

    __slots__ = ("index", "block", "release", "pinned", "hollow", "__weakref__")

    holds = False  # whether other storages live as long as it does

    def __init__(self, index, block=None, release=None, pinned=False, hollow=None):
        self.index, self.block, self.release, self.pinned = index, block, release, pinned
        # compute = "shapes": memory without values, as that of a device is unless the mode knows better
        self.hollow = index >= 0 if hollow is None else hollow

    def __del__(self):
        if self.block is not None:
            self.release(self.block)


class ByAttribute:
    """From PyTorch 2.1 on the Python object of a storage lives as long as the storage, so it can carry the tag."""

    exact = True  # a release is known at once
    of_storage = operator.attrgetter("_cosplay_tag")

    def __init__(self, torch):
        torch.UntypedStorage._cosplay_tag = None
        self.storage = torch._C._TensorBase.untyped_storage

    def put(self, storage, tag):
        storage._cosplay_tag = tag

    def settle(self, whole):
        pass

    def reader(self):
        """A function that returns the tag of a tensor; it is called for each argument of each operation."""
        storage = self.storage

        def tag_of(tensor):
            try:
                return storage(tensor)._cosplay_tag
            except (RuntimeError, NotImplementedError, AttributeError):
                return of_parts(tensor, tag_of)

        return tag_of


class ByTable:
    """Before that, a table with weak references, which can only be asked whether their storage still lives."""

    exact = False
    EACH = 1024  # as many storages are all asked before each allocation
    SOME = 256  # of more, the newest and some others are, and all before the allocator asks for a segment: else n take n * n questions

    def __init__(self, torch):
        self.lock = threading.Lock()
        self.new, self.old, self.at = [], [], 0  # addresses, and where in old the next questions begin
        self.again = False  # a tag was dropped that kept other storages alive
        self.tags = {}  # by the address of the storage, which is not used again while there is a weak reference to it
        self.expired, self.forget = torch.UntypedStorage._expired, torch.UntypedStorage._free_weak_ref
        # To catch PyTorch's error of a tensor without storage takes a millisecond in these versions.
        self.has, self.find = torch._C._has_storage, getattr(torch._C._TensorBase, "_storage", None) or torch._C._TensorBase.untyped_storage

    def storage(self, tensor):
        if not self.has(tensor):
            raise NotImplementedError("this tensor has no storage")
        return self.find(tensor)

    def of_storage(self, storage):
        return self.tags.get(storage._cdata)

    def put(self, storage, tag):
        key = storage._cdata
        if key not in self.tags:
            storage._weak_ref()  # the address of the weak reference is that of the storage
            self.tags[key] = tag
            self.new.append(key)
        else:
            self.tags[key] = tag

    def _drop(self, key):
        tag = self.tags.pop(key, None)
        if tag is not None:
            self.forget(key)
            self.again = self.again or tag.holds

    def settle(self, whole):
        self._settle(whole)
        while self.again:
            self.again = False
            self._settle(True)

    def _settle(self, whole):
        with self.lock:
            whole = whole or len(self.tags) <= self.EACH
            self._ask(self.new, 0, len(self.new))
            if whole:
                self._ask(self.old, 0, len(self.old))
            else:
                self.at = self._ask(self.old, self.at, self.at + self.SOME)
                if self.at >= len(self.old):
                    self.at = 0
            if len(self.new) > self.SOME:
                self.old += self.new[:self.SOME]
                del self.new[:self.SOME]

    def _ask(self, keys, start, end):
        """Drops the dead of a part of a list. Returns where the part then ends."""
        asked = keys if start == 0 and end >= len(keys) else keys[start:end]
        dead = set(filter(self.expired, asked))
        if dead:
            asked = [key for key in asked if key not in dead]
            keys[start:end] = asked
            for key in dead:
                self._drop(key)
        return start + len(asked)

    def reader(self):
        has, storage, find = self.has, self.find, self.tags.get

        def tag_of(tensor):
            try:
                return find(storage(tensor)._cdata) if has(tensor) else of_parts(tensor, tag_of)
            except (RuntimeError, NotImplementedError, AttributeError):
                return of_parts(tensor, tag_of)

        return tag_of


def of_parts(tensor, tag_of):
    """The tag of a tensor that has no storage: a sparse one is where its values are, one within torch.func where the tensor
    is that it stands for."""
    tag = getattr(tensor, "_cosplay_tag", None)
    if tag is not None:
        return tag
    try:
        if is_wrapped(tensor):
            return tag_of(transforms.get_unwrapped(tensor))
        if tensor.is_sparse:
            return tag_of(tensor._values())
        if str(tensor.layout) in ("torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc"):
            return tag_of(tensor.values())
        if batches is not None and batches.levels:
            return batches.tag(tensor, tag_of)
    except (RuntimeError, NotImplementedError, AttributeError):
        pass
    return None


class Batches:
    """The tensors within the vmap that torch.autograd uses, which is older than that of torch.func."""

    def __init__(self, torch):
        self.levels, self.remove, self.has = [], torch._remove_batch_dim, torch._C._has_storage
        self.enter, self.leave = torch._C._vmapmode_increment_nesting, torch._C._vmapmode_decrement_nesting
        torch._C._vmapmode_increment_nesting, torch._C._vmapmode_decrement_nesting = self.increment, self.decrement

    def increment(self):
        self.levels.append(self.enter())
        return self.levels[-1]

    def decrement(self):
        self.levels.pop()
        return self.leave()

    def tag(self, tensor, tag_of):
        for level in reversed(self.levels):
            tensor = self.remove(tensor, level, 1, 0)
        return tag_of(tensor) if self.has(tensor) else None


batches = None
transforms = None  # what PyTorch knows of the tensors within torch.func


def is_wrapped(tensor):
    return transforms is not None and transforms.is_functorch_wrapped_tensor(tensor)


def choose(torch, version):
    global batches, transforms
    transforms, batches = getattr(torch._C, "_functorch", None), Batches(torch)
    return ByAttribute(torch) if version >= (2, 1) else ByTable(torch)
