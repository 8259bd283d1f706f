"""Lets the preparation of PyTorch fail at each of its steps: PyTorch stays as it was, and a later preparation succeeds. It runs in a
session of a simulated host."""
import gc
import json
import os
import signal
import sys
import threading
import types

import cosplay_cuda  # before PyTorch, so that the first step fails when PyTorch is imported

STEPS = ("storages.choose", "booking.make", "numbers.install", "versions.install", "native.install", "refused.replace", "tensors.install", "amp.scaler",
         "programs.install", "script.install", "traces.install", "higher.install", "dropout.install", "refused.install", "extras.install",
         "memory.keep_freed", "report.start", "signals.install", "in_every_thread")


def spaces():
    """What each module and each class of the process has, but for those of the preparation and of this program."""
    found = {}
    for name, module in list(sys.modules.items()):
        if not name.startswith("cosplay") and name not in ("__main__", "__mp_main__", "sys") and isinstance(getattr(module, "__dict__", None), dict):
            found[id(module)] = (name, module, dict(vars(module)))
    for name, module, content in list(found.values()):
        for value in content.values():
            if type(value) is types.ModuleType and value.__name__.startswith("torch."):
                found.setdefault(id(value), (value.__name__, value, dict(vars(value))))
            elif issubclass(type(value), type) and not value.__module__.startswith("cosplay"):
                found[id(value)] = ("%s.%s" % (value.__module__, value.__qualname__), value, dict(vars(value)))
    return found


def changes(before):
    for name, space, content in before.values():
        now = vars(space)
        for key in set(now) | set(content):
            if now.get(key, key) is not content.get(key, key) and not key.startswith("__") and not known(name, key):
                yield "%s.%s" % (name, key)


def known(name, key):
    """Caches of Python, and of PyTorch's operations, that fill while they are used."""
    return name.startswith(("torch.ops", "torch._ops")) or (name, key) == ("torch.cuda", "device_count") or key in (
        "_abc_impl", "_cache", "_cache2", "filters", "_filters_version")


def failing(step):
    """Puts a step in place that fails after it has done its work. Returns what was there."""
    holder, _, name = step.rpartition(".")
    holder = sys.modules["cosplay_cuda." + holder] if holder else cosplay_cuda
    original = getattr(holder, name)

    def fail(*args, **kwargs):
        if step != "in_every_thread":  # the step after which nothing fails
            original(*args, **kwargs)
        raise LookupError(step + "\nsecond line")

    setattr(holder, name, fail)
    return holder, name, original


before = failing(STEPS[0])
import torch  # noqa: E402

setattr(*before)
print(torch.cuda.is_available(), torch.version.cuda, torch.cuda.device_count())
with open(os.path.join(os.path.dirname(os.path.dirname(cosplay_cuda.__file__)), "session.json")) as file:
    session = json.load(file)


def autocast():
    with torch.autocast("cpu", torch.bfloat16):
        return torch.nn.functional.softmax(torch.ones(2, dtype=torch.bfloat16), 0).dtype


plain, handler = autocast(), signal.getsignal(signal.SIGINT)
for step in STEPS:
    known_before, hooks = spaces(), (list(sys.meta_path), list(gc.callbacks))
    placed = failing(step)
    assert not cosplay_cuda.install(torch, session), step
    setattr(*placed)
    left = sorted(changes(known_before))
    assert not left, "%s leaves %s" % (step, left[:20])
    assert signal.getsignal(signal.SIGINT) is handler and cosplay_cuda.by is None, step
    assert (list(sys.meta_path), list(gc.callbacks)) == hooks, step
    assert autocast() is plain and not torch.cuda.is_available() and torch.ones(2).device.type == "cpu"
thread = threading.Thread(target=lambda: print(torch.ones(2).sum().item()))
thread.start()
thread.join()
assert cosplay_cuda.install(torch, session) and cosplay_cuda.by == "CPU"
x = torch.ones(1000, device="cuda")
print(x.device, torch.cuda.memory_allocated(), torch.version.cuda)
