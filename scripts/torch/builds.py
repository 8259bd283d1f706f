"""What CUDA builds and CPU builds of PyTorch have in common in a session: versions, classes under their names, and nothing printed. Of a
CUDA build each function of torch._C that reaches CUDA is one that the session replaces or refuses, or is known to need no GPU."""
import pickle
import re
import subprocess
import sys
import types

import torch

OF_CUDA = re.compile("cuda|cudnn|cublas|nccl|accelerator|gds_|broadcast|scatter|gather", re.IGNORECASE)
# Functions in C that a session keeps: switches, versions and counts.
KEPT = re.compile("_jit_[gs]et_te_|_[gs]et_(cublas|cublaslt|cudnn)_|_set_sdp_|_cudnn_set_conv|_can_use_cudnn_attention|_cuda_getArchFlags"
                  "|_cuda_getCompiledVersion|_cuda_get_conv_benchmark_empty_cache|_cuda_customAllocator|_nccl_version|_accelerator_hooks_"
                  "|_[gs]et_backcompat_|_activate_cuda_trace|_ensureCUDADeviceGuardSet")
PLAIN = """
import torch
x = torch.ones(3, 3, device="cuda", requires_grad=True)
(torch.nn.functional.dropout(x @ x).sum() * torch.ones(()).cuda()).backward()
with torch.cuda.stream(torch.cuda.Stream()), torch.autocast("cuda", torch.float16):
    torch.nn.Linear(3, 3).cuda()(x)
for batch in torch.utils.data.DataLoader(torch.ones(4, 3), pin_memory=True):
    batch.cuda(non_blocking=True)
torch.cuda.synchronize()
"""


def classes():
    cuda = torch.cuda
    for name in ("Stream", "Event", "ExternalStream"):
        kind = getattr(cuda, name)
        assert kind is getattr(cuda.streams, name) and kind.__module__ == "torch.cuda.streams" and kind.__qualname__ == name
        assert pickle.loads(pickle.dumps(kind)) is kind
    derived = type("Derived", (cuda.Stream,), {})
    stream, event = derived(priority=-1), cuda.Event(enable_timing=True)
    assert isinstance(stream, cuda.Stream) and isinstance(stream, torch._C._CudaStreamBase) and isinstance(event, torch._C._CudaEventBase)
    assert issubclass(cuda.ExternalStream, cuda.Stream) and stream == stream and stream != cuda.default_stream()
    with cuda.stream(stream):
        event.record()
    stream.wait_event(event)
    stream.synchronize()
    assert event.query() and stream.query() and event.elapsed_time(stream.record_event(cuda.Event(enable_timing=True))) >= 0
    assert isinstance(cuda.get_device_properties(0), torch._C._CudaDeviceProperties)


def versions():
    major, minor = [int(part) for part in torch.version.cuda.split(".")]
    assert torch._C._cuda_getCompiledVersion() == 1000 * major + 10 * minor
    assert torch.backends.cudnn.is_available() and torch.backends.cudnn.version() >= 8500 and torch.cuda.nccl.version() >= (2, 10)
    assert torch.backends.cuda.is_built() and torch.cuda.get_arch_list()


def functions():
    """The functions in C that the session neither replaces nor refuses."""
    for name in dir(torch._C):
        value = getattr(torch._C, name)
        of_python = isinstance(getattr(value, "__self__", None), list)  # a method of Python's own, in place of the function
        if isinstance(value, types.BuiltinFunctionType) and not of_python and OF_CUDA.search(name) and not KEPT.match(name):
            yield name


def silent():
    """Prints nothing, neither in Python nor in C, and no warning is one."""
    ran = subprocess.run([sys.executable, "-W", "error", "-c", PLAIN], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, b""), ran.stdout.decode()


with open("/proc/self/maps") as file:
    built = "libtorch_cuda" in file.read()
reached = list(functions()) if built else []
classes()
versions()
silent()
print("%s build, CUDA %s: classes and versions as on GPUs, nothing printed, %d functions in C reach CUDA %s"
      % ("CUDA" if built else "CPU", torch.version.cuda, len(reached), ", ".join(reached)))
sys.exit(1 if reached else 0)
