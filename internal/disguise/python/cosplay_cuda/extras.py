"""Parts of PyTorch beside torch.cuda that need a GPU: profilers, export, nested tensors, extensions in CUDA, plans of cuFFT."""
import functools
import importlib.machinery
import multiprocessing.queues
import sys
import warnings

from . import errors


def install(torch, devices):
    profilers(torch)
    plans(torch)
    nested(torch, devices)
    export(torch, devices)
    sharing(torch, devices)
    sys.meta_path.insert(0, Later("torch.utils.cpp_extension", extensions))


class Later:
    """Changes a module right after a program imports it."""

    def __init__(self, name, change):
        self.name, self.change = name, change

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                self.change(module)

            spec.loader.exec_module = exec_module
        return spec


def extensions(module):
    def refuse(*args, **kwargs):
        raise errors.unsupported("An extension in CUDA (torch.utils.cpp_extension)", "build its C++ part alone, with CppExtension")

    module._join_cuda_home = refuse
    module.CUDA_HOME = None


def profilers(torch):
    kind = torch.autograd.profiler.profile
    start = kind.__init__

    @functools.wraps(start)
    def init(self, *args, **kwargs):
        asked = bool(kwargs.pop("use_cuda", False))
        if kwargs.get("use_device") == "cuda":
            asked, kwargs["use_device"] = True, None
        if asked and not kwargs.get("use_cpu", True):
            raise errors.unsupported("A profile of CUDA alone", "add torch.profiler.ProfilerActivity.CPU")
        if asked:
            warnings.warn("CUDA is not available, disabling CUDA profiling: the session's host has no GPU, and the CPU computes")
        start(self, *args, **kwargs)

    kind.__init__ = init
    nvtx(torch)


def nvtx(torch):
    """Marks for NVIDIA's profilers, which nothing reads here. PyTorch's C++ code makes them in CUDA builds alone."""
    kind = torch.autograd.profiler.emit_nvtx

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("NVTX annotation context manager is not reentrant")
        self.entered = True
        torch.cuda.synchronize()
        return self

    def __exit__(self, *error):
        if self.enabled:
            torch.cuda.synchronize()
        return False

    kind.__enter__, kind.__exit__ = __enter__, __exit__


def plans(torch):
    """The cache of plans of cuFFT: it stays empty, and remembers its largest size, which is 4096 plans at first."""
    kind, sizes = torch.backends.cuda.cuFFTPlanCache, {}
    kind.size = property(lambda cache: 0)
    kind.max_size = property(lambda cache: sizes.get(cache.device_index, 4096), lambda cache, size: sizes.__setitem__(cache.device_index, size))
    kind.clear = lambda cache: None


def nested(torch, devices):
    for name in ("nested_tensor", "as_nested_tensor"):
        original = getattr(getattr(torch, "nested", None), name, None)
        if original is not None:
            setattr(torch.nested, name, moved(torch, devices, original))


def moved(torch, devices, original):
    @functools.wraps(original)
    def make(data, *args, **kwargs):
        named = kwargs.get("device")
        index = -1 if named is None else devices.index(named)
        parts = data if isinstance(data, (list, tuple)) else ()
        on_device = index >= 0 or any(isinstance(part, torch.Tensor) and devices.of(part) >= 0 for part in parts)
        if on_device and kwargs.get("layout") not in (None, torch.strided):
            raise errors.unsupported("A nested tensor with layout=torch.jagged on a CUDA device", "use layout=torch.strided")
        if index < 0:
            return original(data, *args, **kwargs)
        kwargs["device"] = None  # that of the parts
        return original([torch.as_tensor(part).to(devices.device(index)) for part in data], *args, **kwargs)

    return make


def export(torch, devices):
    """torch.export runs the code with tensors that only have shapes; the ones of a GPU end the process."""
    module = getattr(torch, "export", None)
    if not hasattr(module, "export"):
        return
    original = module.export

    @functools.wraps(original)
    def run(mod, args, kwargs=None, **options):
        found = [*mod.parameters(), *mod.buffers(), *args, *(kwargs or {}).values()]
        if any(isinstance(part, torch.Tensor) and devices.of(part) >= 0 for part in found):
            raise errors.unsupported("torch.export.export of tensors on a CUDA device", "export on the CPU: module.cpu()")
        return original(mod, args, kwargs, **options)

    module.export = run


def sharing(torch, devices):
    """A queue pickles what it is given in another thread, whose error only that thread prints, and the receiver waits for ever.
    So the caller gets the error, and of a worker of DataLoader the program that reads from it."""
    from torch.utils.data import _utils

    def check(value):
        if isinstance(value, torch.Tensor):
            if devices.of(value) >= 0:
                raise errors.unsupported("Sharing a CUDA tensor with another process", "send tensor.cpu()")
        elif isinstance(value, dict):
            check(list(value.values()))
        elif isinstance(value, (list, tuple)):
            for part in value:
                check(part)

    def checked(function):
        @functools.wraps(function)
        def put(self, obj, *args, **kwargs):
            check(obj)
            return function(self, obj, *args, **kwargs)

        return put

    def fetched(function):
        @functools.wraps(function)
        def fetch(self, *args, **kwargs):
            result = function(self, *args, **kwargs)
            if torch.utils.data.get_worker_info() is not None:
                check(result)
            return result

        return fetch

    multiprocessing.queues.Queue.put = checked(multiprocessing.queues.Queue.put)
    for kind in (_utils.fetch._MapDatasetFetcher, _utils.fetch._IterableDatasetFetcher):
        kind.fetch = fetched(kind.fetch)
