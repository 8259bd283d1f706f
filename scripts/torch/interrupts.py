"""Code that Python runs in the middle of other code: signal handlers, finalizers, and threads of the module _thread. Their
tensors are on the device and booked, and an exception of a handler leaves everything as it was."""
import _thread
import collections
import faulthandler
import gc
import random
import signal
import time

import torch

faulthandler.dump_traceback_later(120, exit=True)
weight = torch.ones(64, device="cuda")
seen = collections.Counter()


def check():
    """Whether operations still run where they should."""
    found = (weight * 2).device.type, (torch.zeros(2) + 1).device.type, torch.empty(1).device.type
    assert found == ("cuda", "cpu", "cpu"), found


def within_handlers(count):
    def handler(number, frame):
        before = torch.cuda.memory_allocated()
        copy = weight.clone()
        made, moved = torch.ones(3, device="cuda") + 1, weight.cpu().double()
        assert torch.cuda.memory_allocated() == before + 1024, "a handler's tensors are not booked"
        stats = torch.cuda.memory_stats()
        assert stats["allocation.all.current"] == stats["active.all.current"] and stats["allocated_bytes.all.current"] % 512 == 0
        seen[copy.device.type, made.device.type, moved.device.type] += 1
        signal.setitimer(signal.ITIMER_REAL, 0.002)

    assert signal.signal(signal.SIGALRM, handler) == signal.SIG_DFL and signal.getsignal(signal.SIGALRM) is handler
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    x = weight
    while sum(seen.values()) < count:
        x = x * 1.0
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert list(seen) == [("cuda", "cuda", "cpu")], seen


def raised_by_handlers(count):
    armed = [False]

    def handler(number, frame):
        if armed[0]:
            armed[0] = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, handler)
    for _ in range(count):
        limit = time.time() + 5
        try:
            armed[0] = True
            signal.setitimer(signal.ITIMER_REAL, 0.001 + random.random() * 0.002)
            while True:
                x, y, z = weight * 1.0, weight.to("cpu"), torch.zeros(3)
                assert time.time() < limit, "the exception of a handler is lost"
        except KeyboardInterrupt:
            pass
        check()
    x = y = z = None


class Buffer:
    """It dies in a cycle, so that Python finalizes it within any operation."""

    def __init__(self):
        self.itself, self.memory = self, torch.ones(8, device="cuda")

    def __del__(self):
        seen[self.memory.clone().device.type, torch.ones(8, device="cuda").device.type] += 1


def finalizers():
    seen.clear()
    thresholds = gc.get_threshold()
    gc.set_threshold(50, 2, 2)
    x = weight
    for _ in range(3000):
        Buffer()
        x = x * 1.0
    gc.set_threshold(*thresholds)
    gc.collect()
    assert list(seen) == [("cuda", "cuda")], seen


def threads():
    found = []
    _thread.start_new_thread(lambda: found.append((torch.ones(2, device="cuda") * 2).device.type), ())
    while not found:
        time.sleep(0.01)
    assert found == ["cuda"], found


within_handlers(100)
raised_by_handlers(200)
finalizers()
threads()
gc.collect()
assert torch.cuda.memory_allocated() == 512, torch.cuda.memory_allocated()
print("handlers, finalizers and threads: as expected")
