"""The memory of the session's devices: one caching allocator for each, over the session's driver."""
import ctypes
import os

from . import allocator, errors, origins, refused, settings
from .storages import Tag

VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


# glibc's mallopt: free memory at the end of the heap that is kept, and the size from which memory is mapped for itself.
KEPT, KEPT_BYTES = -1, 128 << 20
MAPPED, MAPPED_BYTES = -3, 32 << 20  # glibc's own limit


def keep_freed():
    """PyTorch's allocator keeps the memory of a step for the next one. The CPU's returns it to the system if it is at the end
    of the heap, and each step pays for its pages again."""
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")):
        return  # the user decides
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(KEPT, KEPT_BYTES)
        mallopt(MAPPED, MAPPED_BYTES)


class Memory:
    def __init__(self, torch, driver, tags, stream, local):
        self.torch, self.driver, self.tags = torch, driver, tags
        self.stream = stream  # returns the number of a device's current stream
        self.place = stream  # and this the stream, or its part of a private pool, that memory is taken from
        self.allocators = {}
        self.activity = origins.Activity(self.allocators, local, torch.is_grad_enabled)
        self.settings = None
        self.forked = False
        self.progress = None  # what the program knows of its streams
        self.observers = []  # the program's functions that are called when there is no memory
        self.refused, self.refusal = 0, ""  # how often the program got PyTorch's error, and its last text

    def of(self, index):
        state = self.allocators.get(index)
        if state is None:
            if self.forked:
                raise RuntimeError(errors.FORKED)
            if self.settings is None:
                self.set(next((os.environ[name] for name in VARIABLES if os.environ.get(name)), ""))
            state = self.allocators.setdefault(index, allocator.Allocator(
                lambda size: self.driver.take(index, size), lambda handle: self.driver.give(index, handle), self.settings,
                None if self.tags.exact else self.tags.settle, lambda size: size <= self.driver.memory(index)[0], self.progress))
            if state.origins is None:
                state.origins = origins.Origins(state, self.activity)
        return state

    def set(self, text):
        """Settings of the allocators, as PYTORCH_CUDA_ALLOC_CONF has them."""
        self.settings = settings.Settings(text)
        refused.warn_of_settings(self.settings.pairs(text))
        for state in self.allocators.values():
            state.settings = self.settings

    def tag(self, index, size):
        """The tag of a new storage of this size, booked."""
        if not size:
            return Tag(index)
        state = self.allocators.get(index) or self.of(index)
        try:
            block = state.allocate(size, self.place(index))
        except allocator.OutOfMemory:
            free, total = self.driver.memory(index)
            state.origins.failed(size, self.stream(index), total - free)
            for observer in self.observers:
                observer(index, size, total, free)
            raise self.noted(errors.out_of_memory(self.torch, index, state, size, free, total)) from None
        tag = Tag(index, block, state.release)
        if block is None:
            state.later.append((tag, size, self.place(index)))
        elif state.later:
            self.book_later(state)
        return tag

    def workspace(self, index, size):
        """The same for memory of a kernel or a library, beside its results."""
        tag = self.tag(index, size)
        if tag.block is not None:
            tag.block.kind = origins.WORKSPACES
        return tag

    def book_later(self, state):
        """Books what finalizers have made in the middle of an allocation, as far as there is memory."""
        while state.later:
            tag, size, stream = state.later.popleft()
            try:
                tag.block = state.allocate(size, stream)
            except allocator.OutOfMemory:
                pass

    def noted(self, error):
        # A frame that raises its own variable would be in a cycle with it, and keep the program's tensors alive.
        self.refused, self.refusal = self.refused + 1, str(error)
        return error

    def empty_cache(self):
        for state in list(self.allocators.values()):
            state.empty_cache()
