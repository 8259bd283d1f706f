"""Undoes a preparation of PyTorch that fails half-way: tensors on devices whose memory is not booked would be the worst outcome."""
import gc
import math
import multiprocessing.queues
import signal
import sys
import _thread
import threading
import types
import warnings

OTHERS = (math, multiprocessing.queues, multiprocessing.queues.Queue, signal, _thread, threading, threading.Thread, warnings)


class Undo:
    """A block that leaves PyTorch's modules and classes, and what else a preparation changes, as they were if it fails."""

    def __init__(self, torch):
        self.torch = torch

    def __enter__(self):
        self.handlers = {number: signal.getsignal(number) for number in range(1, signal.NSIG)}
        self.lists = [(changed, list(changed)) for changed in (sys.meta_path, gc.callbacks)]
        self.names = {}  # what each module and class has, by its identity
        for module in (*[module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "torch"], *OTHERS):
            self.add(module)
        for _, content in list(self.names.values()):
            for value in content.values():
                kind = type(value)  # not isinstance, which some objects of PyTorch answer with a warning
                if (kind is types.ModuleType or issubclass(kind, type)) and of_torch(value):
                    self.add(value)
        self.libraries = []
        Library, libraries = getattr(getattr(self.torch, "library", None), "Library", None), self.libraries
        if Library is not None:
            start = self.start = Library.__init__

            def remember(self, *args, **kwargs):
                start(self, *args, **kwargs)
                libraries.append(self)

            Library.__init__ = remember

    def add(self, space):
        self.names.setdefault(id(space), (space, dict(vars(space))))

    def __exit__(self, kind, error, trace):
        if hasattr(self, "start"):
            self.torch.library.Library.__init__ = self.start
        if kind is not None:
            for library in self.libraries:
                remove_kernels(self.torch, library)
            for space, before in self.names.values():
                restore(space, before)
            for changed, before in self.lists:
                changed[:] = before
            for number, handler in self.handlers.items():
                if signal.getsignal(number) is not handler:
                    signal.signal(number, handler)


def of_torch(value):
    """Whether a class, or a module that is no entry of sys.modules, is PyTorch's."""
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return isinstance(name, str) and name.partition(".")[0] == "torch"


def restore(space, before):
    now = vars(space)
    for name in [name for name in now if name not in before]:
        delattr(space, name)
    for name, value in before.items():
        if now.get(name, restore) is not value:
            if isinstance(now, dict):
                now[name] = value
            else:
                setattr(space, name, value)  # a class, which shows its names and does not let them be changed there


def remove_kernels(torch, library):
    if hasattr(library, "_destroy"):
        library._destroy()
    else:
        torch.library._impls.difference_update(library._op_impls)
        library._op_impls.clear()
        del library.m
