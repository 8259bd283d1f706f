"""Makes a CUDA build of PyTorch out of a CPU build, as far as its Python code can tell: bases of C, which no class can leave, functions of
torch._C that reach a driver, and versions. Then it uses PyTorch in a session of a simulated host."""
import collections
import ctypes
import importlib.machinery
import sys

import cosplay_torch  # before PyTorch: the session prepares it with this module

# Some functions of each kind that PyTorch 2.6 has for CUDA.
NAMES = """_cuda_getDeviceCount _cuda_init _cuda_setDevice _cuda_getDevice _cuda_exchangeDevice _cuda_synchronize _cuda_getCurrentStream
_cuda_memoryStats _cuda_emptyCache _cuda_isInBadFork _cuda_memorySnapshot _cuda_getCurrentBlasHandle _cuda_setStream _cuda_sleep
_cuda_record_memory_history _cuda_cudaCachingAllocator_enable _cuda_changeCurrentAllocator _cuda_tunableop_enable _cuda_set_sync_debug_mode
_cuda_jiterator_compile_and_launch_kernel _cuda_hasPrimaryContext _cuda_lock_mutex _cuda_unlock_mutex _nccl_all_reduce _nccl_unique_id
_construct_CUDA_Tensor_From_Storage_And_Metadata _broadcast _gather _scatter _cuda_of_a_later_version""".split()
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
asked = []


def in_c(name):
    def function(*args, **kwargs):
        raise SystemError("torch._C.%s reaches CUDA" % name)

    return function


def count():
    """Asks NVIDIA's runtime, which must find no device: it would print a line."""
    asked.append(getenv(b"CUDA_VISIBLE_DEVICES"))
    return 0


class Later:
    """torch.cuda derives its classes from those of torch._C, so these are there before it is imported."""

    def find_spec(self, name, path=None, target=None):
        if name == "torch.cuda":
            C = sys.modules["torch._C"]
            for kind in ("_CudaStreamBase", "_CudaEventBase", "_CUDAGraph"):
                setattr(C, kind, type(kind, (collections.deque,), {"__module__": "torch._C"}))
            for function in NAMES:
                setattr(C, function, in_c(function))
            C._cuda_getDeviceCount = count
            C._graph_pool_handle = C._cuda_isCurrentStreamCapturing = C._cuda_getCompiledVersion = lambda: 11080
            C._cuda_getArchFlags = lambda: "sm_75 sm_86"
            C._nccl_version, C._nccl_version_suffix = lambda: 2 << 32 | 20 << 16 | 5, lambda: b""
            C._CudaDeviceProperties = type("_CudaDeviceProperties", (), {})
        return None


def prepare(torch):
    torch.version.cuda = "11.8"
    before.append(torch.cuda.Stream)
    session(torch)


before, session, cosplay_torch.prepare = [], cosplay_torch.prepare, prepare
sys.meta_path.insert(0, Later())
visible = getenv(b"CUDA_VISIBLE_DEVICES")
import torch  # noqa: E402

assert asked == [b""] and getenv(b"CUDA_VISIBLE_DEVICES") == visible, asked
assert torch.cuda.Stream is torch.cuda.streams.Stream is not before[0] and not issubclass(torch.cuda.Stream, collections.deque)
for name in NAMES:
    try:
        getattr(torch._C, name)(*range(20))
    except SystemError as error:
        sys.exit(str(error))
    except Exception:
        pass  # it is refused, or gets too many arguments
try:
    torch._C._cuda_of_a_later_version()
except RuntimeError as error:
    print(error)
x = torch.ones(100, 100, device="cuda", requires_grad=True)
with torch.cuda.stream(torch.cuda.Stream()) as s:
    (x @ x).sum().backward()
event = torch.cuda.current_stream().record_event()
print(x.grad.device, event.query(), torch.cuda.memory_allocated() > 80000, torch.version.cuda, torch._C._cuda_getCompiledVersion(),
      torch.cuda.nccl.version(), torch.cuda.get_arch_list())
