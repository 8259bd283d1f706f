"""The history of allocations that torch.cuda.memory._record_memory_history asks for: where the program was at each one, for the
snapshots of PyTorch, from the record that each allocator keeps of its blocks."""
import collections
import os
import sys
import time

from . import errors

HERE = os.path.dirname(os.path.abspath(__file__))


def frames():
    """Where the program is, from the inside out, as (code, line)."""
    found, frame = [], sys._getframe(2)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(HERE):
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return found


def shown(places):
    return [{"filename": code.co_filename, "line": line, "name": code.co_name} for code, line in places]


def address(block):
    return block.segment.handle + block.start


class Recorder:
    """The history of one allocator, which its record of origins feeds."""

    def __init__(self, state, *options):
        state.counts()  # what was released before is not in the history
        self.state, self.trace = state, ()
        self.set(*options)
        self.blocks, self.segments = {}, {}  # where they were allocated, by their addresses
        state.origins.history = self

    def set(self, events, limit, skip, context):
        """context says of what the place is kept: of nothing (None), of what is allocated ("state"), of each allocation too ("alloc"), and
        of segments that are returned ("all")."""
        self.events, self.skip, self.context = events, skip, context
        self.trace = collections.deque(self.trace, limit)

    def stop(self):
        self.state.counts()
        self.state.origins.history = None

    def note(self, action, at, size, stream, places=()):
        if self.events and action not in self.skip:
            if self.context not in ("alloc", "all"):
                places = ()
            entry = {"action": action, "device_free" if action == "oom" else "addr": at, "size": size, "stream": stream, "time_us": int(time.time() * 1e6)}
            self.trace.append((entry, places))

    def born(self, block):
        places = self.blocks[address(block)] = frames() if self.context else ()
        self.note("alloc", address(block), block.requested, block.pool.stream, places)

    def died(self, block):
        at, size, stream = address(block), block.requested, block.pool.stream
        self.blocks.pop(at, None)
        self.note("free_requested", at, size, stream)
        self.note("free_completed", at, size, stream)

    def failed(self, requested, stream):
        self.note("oom", 0, requested, stream, frames() if self.context else ())

    def grew(self, segment):
        places = self.segments[segment.handle] = frames() if self.context else ()
        self.note("segment_alloc", segment.handle, segment.size, segment.pool.stream, places)

    def gave(self, segment):
        self.segments.pop(segment.handle, None)
        self.note("segment_free", segment.handle, segment.size, segment.pool.stream, frames() if self.context == "all" else ())


class History:
    def __init__(self, torch, memory):
        self.torch, self.memory = torch, memory
        self.recorders = {}  # by device
        self.options = None  # of the recorders, while the history is on

    def start(self, events, limit, skip=(), context="alloc"):
        self.options = events, limit, skip, context
        for recorder in self.recorders.values():
            recorder.set(*self.options)
        self.memory.of = self.of
        for index in list(self.memory.allocators):
            self.of(index)

    def stop(self):
        if self.options is None:
            return
        del self.memory.of
        for recorder in self.recorders.values():
            recorder.stop()
        self.recorders, self.options = {}, None

    def of(self, index):
        state = type(self.memory).of(self.memory, index)
        if index not in self.recorders:
            self.recorders[index] = Recorder(state, *self.options)
        return state

    def record(self, enabled="all", context="all", stacks="all", max_entries=sys.maxsize, clear_history=False, compile_context=False,
               annotations=False, skip_actions=(), *rest):
        if enabled not in (None, "state", "all"):
            raise RuntimeError("expected state to be 'state', 'all', or None")
        if enabled is None or clear_history:
            self.stop()
        if enabled is not None:
            self.start(enabled == "all", min(max_entries, sys.maxsize), tuple(skip_actions), context)

    def record_legacy(self, enabled, context=True, max_entries=1, events=False, *rest):
        if enabled:
            self.start(bool(events), max(max_entries, 1))
        else:
            self.stop()

    def snapshot(self, found, pool, traces):
        """Adds the history to a snapshot of PyTorch: segments in a list, or in newer versions in a dictionary."""
        segments = found["segments"] if isinstance(found, dict) else found
        if pool is not None:
            segments[:] = [segment for segment in segments if segment["segment_pool_id"] == pool]
        for segment in segments:
            recorder = self.recorders.get(segment["device"])
            if recorder is None:
                continue
            segment["frames"] = shown(recorder.segments.get(segment["address"], ()))
            at = segment["address"]
            for block in segment["blocks"]:
                places = recorder.blocks.get(at)
                if places is not None and errors.version(self.torch) < (2, 0):
                    block["history"] = [{"addr": at, "real_size": block["requested_size"], "frames": shown(places)}]
                elif places is not None:
                    block["frames"] = shown(places)
                at += block["size"]
        if traces and isinstance(found, dict):
            for index, recorder in self.recorders.items():
                found["device_traces"][index] = [dict(entry, frames=shown(places)) for entry, places in recorder.trace]
        return found


def install(torch, memory, graphs):
    history = History(torch, memory)
    plain = torch._C._cuda_memorySnapshot

    def snapshot(wanted=None):
        """wanted is the identifier of a private pool, or of none, with whether the traces are wanted too."""
        active = graphs.local.pools[-1].id if graphs.local.pools else None
        pool = wanted[:2] if wanted and any(wanted[:2]) else active
        return history.snapshot(plain(), pool, wanted is None or len(wanted) < 3 or wanted[2])

    provided = {"_cuda_memorySnapshot": snapshot, "_cuda_isHistoryEnabled": lambda: history.options is not None,
                "_cuda_recordMemoryHistory": history.record_legacy, "_cuda_record_memory_history": history.record,
                "_cuda_record_memory_history_legacy": history.record_legacy, "_cuda_attach_out_of_memory_observer": memory.observers.append}
    for name, function in provided.items():
        setattr(torch._C, name, function)
