"""CUDA graphs: a capture records the operations of its thread (recording.py), and their memory is taken from a private pool,
which stays with the graph. Also the private pools that programs make: torch.cuda.MemPool."""
import functools
import threading
import warnings
import weakref

from . import builds, errors, recording, streams


class Local(threading.local):
    def __init__(self):
        self.routes = []  # (device, owner): where memory of a device is taken from, the last one first
        self.graph = None  # the graph that this thread captures
        self.pools = []  # of MemPoolContext, which some versions have


class Seeds:
    """The two numbers by which the random numbers of a graph start: CUDA's generator has them on the device."""

    def __init__(self, memory, device):
        self.tags = memory.tag(device, 8), memory.tag(device, 8)


class Captured:
    """What a graph holds from its capture on. It is released with the graph."""

    def __init__(self, state, pool):
        self.state, self.pools = state, []
        self.retain(pool)
        weakref.finalize(self, self.release, state, self.pools).atexit = False

    def retain(self, pool):
        if pool not in self.pools:
            self.state.retain(pool)
            self.pools.append(pool)

    @staticmethod
    def release(state, pools):
        for pool in pools:
            state.release_pool(pool)


class Graphs:
    def __init__(self, torch, mode, tags, memory, *computing):
        self.torch, self.memory, self.mode = torch, memory, mode
        self.local = Local()
        self.numbers = {True: 0, False: 0}  # of pools that programs ask for, and of all others
        self.seeds = weakref.WeakValueDictionary()  # by device, while a graph uses them
        self.Recording = recording.make(torch, mode, tags, *computing)

    def place(self, device):
        """The stream whose free blocks a request of this thread is served from."""
        number = streams.stream_of(device)
        for at, owner in reversed(self.local.routes):
            if at == device:
                return number, owner
        return number

    def handle(self, by_program=True):
        self.numbers[by_program] += 1
        return (0, self.numbers[True]) if by_program else (self.numbers[False], 0)

    def capturing(self):
        return self.local.graph is not None and streams.stream_of(streams.current.device) != 0

    def refuse(self):
        """Raises CUDA's error for what a capture does not permit; returns outside of one."""
        if self.local.graph is not None:
            raise self.local.graph.recording.refused()

    def begin(self, device, owner):
        self.memory.place = self.place  # not before, because it costs time
        self.local.routes.append((device, owner))

    def end(self, device, owner):
        for at in range(len(self.local.routes) - 1, -1, -1):
            if self.local.routes[at] == (device, owner):
                del self.local.routes[at]
                return
        raise RuntimeError("endAllocatePool: not currently recording to mempool_id")

    def seeds_of(self, device):
        if errors.version(self.torch) < (2, 3):
            return Seeds(self.memory, device)  # each graph has its own
        seeds = self.seeds.get(device)
        if seeds is None:
            seeds = self.seeds[device] = Seeds(self.memory, device)
        return seeds


def install(torch, mode, tags, memory, *computing):
    graphs = Graphs(torch, mode, tags, memory, *computing)
    base = graph_class(torch, graphs)
    for name in ("_CUDAGraph", "_acceleratorGraph"):
        if hasattr(torch._C, name):
            builds.rebase(torch, name, base)
    pools(torch, graphs)
    provided = {
        "_graph_pool_handle": graphs.handle,
        "_cuda_isCurrentStreamCapturing": graphs.capturing,
        "_cuda_beginAllocateToPool": lambda device, pool: (memory.of(device).retain(pool), graphs.begin(device, pool)),
        "_cuda_beginAllocateCurrentThreadToPool": lambda device, pool: (memory.of(device).retain(pool), graphs.begin(device, pool)),
        "_cuda_beginAllocateCurrentStreamToPool": lambda device, pool: (memory.of(device).retain(pool), graphs.begin(device, pool)),
        "_cuda_endAllocateCurrentStreamToPool": graphs.end,
        "_cuda_endAllocateToPool": graphs.end,
        "_cuda_releasePool": lambda device, pool: memory.of(device).release_pool(pool),
    }
    for name, function in provided.items():
        setattr(torch._C, name, function)
        for module in (torch.cuda, torch.cuda.graphs, torch.cuda.memory):
            if hasattr(module, name):
                setattr(module, name, function)
    waits(torch, graphs)
    return graphs


def waits(torch, graphs):
    """The functions that wait for a GPU are errors in a capture."""

    def checked(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            graphs.refuse()
            return function(*args, **kwargs)

        return run

    for kind in (torch.cuda.streams.Stream, torch.cuda.streams.Event):
        for name in ("synchronize", "query"):
            setattr(kind, name, checked(getattr(kind, name)))
    torch._C._cuda_synchronize = checked(torch._C._cuda_synchronize)


def graph_class(torch, graphs):
    local, memory = graphs.local, graphs.memory

    class CUDAGraphBase(object):
        _debug = False

        def __new__(cls, keep_graph=False):
            torch.cuda._lazy_init()
            self = object.__new__(cls)
            self.keep, self.captured, self.recording, self.instantiated = keep_graph, None, None, False
            return self

        def __init__(self, keep_graph=False):
            pass

        @property
        def _has_graph_exec(self):
            return self.instantiated

        def register_generator_state(self, generator):
            return None

        def capture_begin(self, pool=None, capture_error_mode="global"):
            if self.instantiated:
                raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance.")
            device = streams.current.device
            if not streams.stream_of(device):
                raise RuntimeError("CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them on the "
                                   "default stream.)")
            graphs.refuse()
            self.seeds = graphs.seeds_of(device)
            self.device, self.stream = device, streams.stream_of(device)
            self.captured = Captured(memory.of(device), tuple(pool) if pool and any(pool) else graphs.handle(False))
            self.recording, self.tally = graphs.Recording(), graphs.mode.local.mode.tally
            self.before = self.tally.copy()
            memory.of(device).captures += 1
            graphs.begin(device, self.captured.pools[0])
            local.graph = self
            self.recording.__enter__()

        def capture_end(self):
            self.capture_end_pre()
            if not self.keep:
                self.instantiate()
            self.capture_end_post()

        def capture_end_pre(self):
            if local.graph is not self or streams.stream_of(self.device) != self.stream:
                raise RuntimeError("Capture must end on the same stream it began on.")
            local.graph = None
            self.recording.__exit__(None, None, None)
            graphs.end(self.device, self.captured.pools[0])
            memory.of(self.device).captures -= 1
            self.recording.finish()
            # A capture computes nothing, and each run computes all.
            self.counts = self.tally.copy()
            self.counts.add(self.before, -1)
            self.tally.add(self.counts, -1)
            if self.recording.failed:
                self.captured = self.recording = None
                raise errors.of_cuda(torch, "operation failed due to a previous error during capture", "cudaErrorStreamCaptureInvalidated")
            if not self.recording.operations:
                warnings.warn("The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong device or stream.")

        def instantiate(self):
            if self.recording is None:
                raise RuntimeError("capture_end() must have been called before calling instantiate")
            self.instantiated = True

        def capture_end_post(self):
            return None

        def replay(self):
            if not self.instantiated:
                raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
            graphs.refuse()
            graphs.mode.local.mode.tally.add(self.counts)
            self.recording.replay()

        def reset(self):
            self.captured = self.recording = None
            self.instantiated = False

        def pool(self):
            if self.captured is None:
                raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
            return self.captured.pools[0]

        def pools(self):
            return list(self.captured.pools) if self.captured else []

        def _retain_pool(self, pool):
            self.captured.retain(tuple(getattr(pool, "id", pool)))

        @staticmethod
        def get_currently_capturing_graph():
            if local.graph is None:
                raise RuntimeError("No graph is being captured.")
            return local.graph

        def enable_debug_mode(self):
            CUDAGraphBase._debug = True

        def debug_dump(self, debug_path):
            if not CUDAGraphBase._debug:
                warnings.warn("CUDA Graphs debug not enabled, set with torch._C._cuda_enable_graphs_debug_mode")
                return
            with open(debug_path, "w") as file:
                file.write("digraph dot {\n")
                for number, step in enumerate(self.recording.steps if self.recording else ()):
                    file.write('"%d" [label="%s"];\n' % (number, step.func))
                    if number:
                        file.write('"%d" -> "%d";\n' % (number - 1, number))
                file.write("}\n")

        def raw_cuda_graph(self):
            raise errors.unsupported("torch.cuda.CUDAGraph.raw_cuda_graph")

        def raw_cuda_graph_exec(self):
            raise errors.unsupported("torch.cuda.CUDAGraph.raw_cuda_graph_exec")

    CUDAGraphBase.__name__ = "_CUDAGraph"
    return CUDAGraphBase


def pools(torch, graphs):
    """The base classes of torch.cuda.MemPool and of its context."""
    memory, local = graphs.memory, graphs.local

    class MemPoolBase(object):
        def __init__(self, allocator=None, is_user_created=True, use_on_oom=False, no_split=False):
            if allocator is not None:
                raise errors.unsupported("torch.cuda.MemPool with an allocator", "leave the allocator out")
            torch.cuda._lazy_init()
            self.allocates, self.device = None, streams.current.device
            self.number = graphs.handle(is_user_created)
            self.uses = Captured(memory.of(self.device), self.number)
            weakref.finalize(self, memory.of(self.device).empty_cache, self.number).atexit = False

        id = property(lambda self: self.number)
        allocator = property(lambda self: self.allocates)

        def use_count(self):
            return memory.of(self.device).private[self.number]

    class ContextBase(object):
        def __init__(self, pool):
            local.pools.append(pool)
            self.pool = pool

        def __del__(self):
            if self.pool in local.pools:
                local.pools.remove(self.pool)

        @staticmethod
        def active_pool():
            return local.pools[-1] if local.pools else None

    for name, base in (("_MemPool", MemPoolBase), ("_MemPoolContext", ContextBase)):
        if hasattr(torch._C, name):
            builds.rebase(torch, name, base)
