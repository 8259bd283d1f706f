"""Streams and events. All work is done when a call returns, so a stream only has a number, which the allocator uses, and
an event only has a time."""
import threading
import time

from . import errors

CUDA_TYPE = 1  # what PyTorch calls the device's type in the parts of a stream
NUMBERS = 32  # PyTorch has this many streams of a priority for each device, and uses them in turn


class Current(threading.local):
    def __init__(self):
        self.device = 0
        self.streams = {}  # by device; 0 is the default stream


current = Current()
_last = {}


def stream_of(device):
    return current.streams.get(device, 0)


def pack(device, number):
    """A stream in one number, as old versions of PyTorch have it."""
    return device << 32 | number


def make(torch):
    """The base classes of torch.cuda.Stream and torch.cuda.Event."""

    class StreamBase(object):
        def __new__(cls, device=None, priority=0, _cdata=None, stream_id=None, device_index=None, device_type=None, stream_ptr=None, **kwargs):
            self = object.__new__(cls)
            if _cdata is not None:
                device_index, stream_id = _cdata >> 32, _cdata & 0xFFFFFFFF
            elif stream_ptr is not None:
                device_index, stream_id = current.device, stream_ptr
            elif stream_id is None:
                device_index = current.device
                turn = _last[device_index] = _last.get(device_index, 0) % NUMBERS + 1
                stream_id = turn + (NUMBERS if priority < 0 else 0)
            self.stream_id, self.device_index, self.device_type = stream_id, device_index, CUDA_TYPE
            self.priority = -1 if NUMBERS < stream_id <= 2 * NUMBERS else 0
            return self

        def __init__(self, *args, **kwargs):
            pass

        @property
        def cuda_stream(self):
            return self.stream_id

        @property
        def device(self):
            return torch.device("cuda", self.device_index)

        @property
        def _cdata(self):
            return pack(self.device_index, self.stream_id)

        @staticmethod
        def priority_range():
            return 0, -1

        def query(self):
            return True

        def synchronize(self):
            return None

        def is_capturing(self):
            return False

        def __enter__(self):
            self.entered = getattr(self, "entered", []) + [(current.device, stream_of(self.device_index))]
            current.device = self.device_index
            current.streams[self.device_index] = self.stream_id
            return self

        def __exit__(self, *error):
            current.device, current.streams[self.device_index] = self.entered.pop()

        def __eq__(self, other):
            return (self.stream_id, self.device_index) == (other.stream_id, other.device_index)

        def __hash__(self):
            return hash((self.stream_id, self.device_index))

    class EventBase(object):
        def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False, **kwargs):
            if interprocess and enable_timing:
                raise RuntimeError("An event between processes cannot have timing: use enable_timing=False")
            self = object.__new__(cls)
            self.enable_timing, self.time, self.device_index = bool(enable_timing), None, None
            return self

        def __init__(self, *args, **kwargs):
            pass

        @property
        def cuda_event(self):
            return id(self) if self.time is not None else 0

        @property
        def device(self):
            return None if self.device_index is None else torch.device("cuda", self.device_index)

        def record(self, stream=None):
            device = current.device if stream is None else stream.device_index
            if self.device_index not in (None, device):
                raise RuntimeError("Event device %d does not match recording stream's device %d." % (self.device_index, device))
            self.device_index, self.time = device, time.perf_counter()

        def wait(self, stream=None):
            return None

        def query(self):
            return True

        def synchronize(self):
            return None

        def elapsed_time(self, end):
            if not self.enable_timing or not end.enable_timing:
                raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
            if self.time is None or end.time is None:
                raise RuntimeError("Both events must be recorded before calculating elapsed time.")
            if self.device_index != end.device_index:
                raise errors.of_cuda(torch, "invalid resource handle", "cudaErrorInvalidResourceHandle")
            return (end.time - self.time) * 1000

        def ipc_handle(self):
            raise errors.unsupported("torch.cuda.Event.ipc_handle")

        @classmethod
        def from_ipc_handle(cls, device, handle):
            raise errors.unsupported("torch.cuda.Event.from_ipc_handle")

    return StreamBase, EventBase


def generic(torch):
    """torch.Stream and torch.Event, which make those of the accelerator. Their C++ code finds none in a CPU build."""
    for name in ("Stream", "Event"):
        if hasattr(torch, name):
            setattr(torch, name, of_cuda(getattr(torch, name), getattr(torch.cuda, name), torch.device))


def of_cuda(base, kind, device):
    class Kind(type):
        def __call__(cls, *args, **kwargs):
            named = args[0] if args else kwargs.get("device")
            if named is not None and device(named).type != "cuda" or "stream_id" in kwargs:
                return base(*args, **kwargs)
            if base.__name__ == "Stream":
                return kind(*args, **kwargs)
            kwargs.pop("device", None)
            return kind(*args[1:], **kwargs)

        def __instancecheck__(cls, other):
            return isinstance(other, (base, kind))

        def __subclasscheck__(cls, other):
            return other is cls or issubclass(other, (base, kind))

    return Kind(base.__name__, (), {"__module__": "torch", "__doc__": base.__doc__})
