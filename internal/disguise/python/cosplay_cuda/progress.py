"""When CUDA's allocator may use a block again that a stream used to which it does not belong (Tensor.record_stream): once the program has
waited for what that stream had to do when the block was released. A GPU may be faster. It is not slower than its queue is
long, so that a block is also free after so many further operations."""
import functools

from . import streams

QUEUE = 1024  # launches that CUDA queues before the next one waits


class Progress:
    """What the program knows of its streams. Nothing is followed before it records a stream for a tensor."""

    def __init__(self, memory, counters):
        self.memory, self.counters = memory, counters
        self.active, self.time = False, 0
        self.seen = {}  # for each stream, how far it has waited for others
        self.done = {}  # for each stream, how far the program has waited for it; for each device, all its streams

    def start(self):
        self.active = True
        self.counters.follower = self

    def tick(self):
        """The time of an event. What was released before it has an earlier one."""
        for state in list(self.memory.allocators.values()):
            state.counts()
        self.time += 1
        return self.time

    def past(self, key):
        """How far each stream is, of all that a stream waits for, and it."""
        return merged(self.seen.get(key, {}), {key: self.tick()})

    def moments(self, keys):
        """When a block was released that these streams use."""
        return self.time, self.counters.total("launches"), tuple(keys)

    def passed(self, moments):
        time, launches, keys = moments
        return (all(max(self.done.get(key, 0), self.done.get(key[0], 0)) > time for key in keys)
                or self.counters.total("launches") - launches > QUEUE)

    def wait_for(self, past):
        self.done = merged(self.done, past)

    def wait_for_device(self, device):
        self.wait_for({device: self.tick()})

    def wait_for_stream(self, device):
        """The program waits for the current stream of a device, as for each copy to the host."""
        self.wait_for(self.past((device, streams.stream_of(device))))


def merged(a, b):
    result = dict(a)
    for key, time in b.items():
        result[key] = max(time, result.get(key, 0))
    return result


def install(torch, devices, memory, counters, graphs):
    progress = Progress(memory, counters)
    memory.progress = progress
    stream_kind, event_kind = torch.cuda.streams.Stream, torch.cuda.streams.Event

    def key_of(stream):
        device = streams.current.device if stream is None else stream.device_index
        return device, streams.stream_of(device) if stream is None else stream.stream_id

    def after(kind, name, then):
        """Adds what follows a method, once the program records streams."""
        original = getattr(kind, name)

        @functools.wraps(original)
        def method(self, *args, **kwargs):
            result = original(self, *args, **kwargs)
            if progress.active:
                then(self, args[0] if args else kwargs.get("stream"))
            return result

        setattr(kind, name, method)

    def recorded(event, stream):
        event.past = progress.past(key_of(stream))

    def waits(event, stream):
        key = key_of(stream)
        progress.seen[key] = merged(progress.seen.get(key, {}), getattr(event, "past", {}))

    after(event_kind, "record", recorded)
    after(event_kind, "wait", waits)
    for name in ("synchronize", "query"):
        after(event_kind, name, lambda event, _: progress.wait_for(getattr(event, "past", {})))
        after(stream_kind, name, lambda stream, _: progress.wait_for(progress.past(key_of(stream))))
    synchronize = torch._C._cuda_synchronize

    def whole():
        synchronize()
        if progress.active:
            progress.wait_for_device(streams.current.device)

    torch._C._cuda_synchronize = whole

    def record_stream(self, stream):
        tag = devices.tag_of(self)
        if tag is None or tag.block is None or graphs.local.graph is not None:
            return  # in a capture the graph orders its streams
        key = key_of(stream)
        if key != (tag.index, tag.block.pool.stream):
            progress.start()
            tag.block.uses = (tag.block.uses or frozenset()) | {key}

    torch.Tensor.record_stream = record_stream
