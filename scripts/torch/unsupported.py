"""Programs that use what a session without a GPU does not have, each with its message: the error or the warning that it gets."""
import importlib.util
import io
import os
import re
import sys
import warnings

import torch

VERSION = tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", torch.__version__).groups())
HERE = "is not available in this session: its host has no GPU, and the CPU computes"
CASES = []


def case(kind, message, since=(1, 13), until=(9, 0)):
    """A program that gets an error or a warning of a kind, with this text in it; None for a program that gets neither."""

    def add(function):
        if since <= VERSION < until:
            CASES.append((function.__name__.replace("_", " "), function, kind, message))
        return function

    return add


def x(size=3, dtype=torch.float32):
    return torch.ones(size, size, device="cuda").to(dtype)


# Streams and handles


@case(None, None)
def flags_of_libraries():
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    assert cudnn.version() >= 8500 and cudnn.is_available() is True and torch.version.cuda.split(".")[0] in ("11", "12", "13")
    cudnn.benchmark, cudnn.deterministic, matmul.allow_fp16_reduced_precision_reduction = True, True, False
    assert cudnn.benchmark and cudnn.deterministic and not matmul.allow_fp16_reduced_precision_reduction
    plans = torch.backends.cuda.cufft_plan_cache
    plans.max_size = 10
    assert plans.max_size == plans[0].max_size == 10 and plans.size == 0 and plans[1].max_size == 4096 and plans.clear() is None


@case(None, None)
def other_library_of_linear_algebra():
    assert torch.backends.cuda.preferred_linalg_library("cusolver") == torch.backends.cuda.preferred_linalg_library() == torch._C._LinalgBackend.Cusolver
    torch.backends.cuda.preferred_linalg_library("default")


# Memory of a GPU outside PyTorch


@case(TypeError, "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
def numpy():
    x().requires_grad_().numpy()


@case(BufferError, "a CUDA tensor of this session cannot be exported by DLPack: its host has no GPU, and the CPU computes")
def dlpack():
    torch.utils.dlpack.to_dlpack(x())


@case(BufferError, "a CUDA tensor of this session cannot be exported by DLPack")
def dlpack_protocol():
    torch.from_dlpack(x())


@case(AttributeError, "a tensor of this session has no __cuda_array_interface__: its host has no GPU, and the CPU computes")
def array_interface():
    x().__cuda_array_interface__


@case(RuntimeError, "Sharing a CUDA tensor with another process " + HERE + "; send tensor.cpu()")
def sharing_a_tensor():
    from torch.multiprocessing import get_context
    get_context("spawn").SimpleQueue().put(x())


@case(RuntimeError, "Sharing a CUDA tensor with another process " + HERE + "; send tensor.cpu()")
def sharing_a_tensor_by_a_queue():
    from torch.multiprocessing import get_context
    get_context("spawn").Queue().put({"tensors": [x()]})


class OnTheDevice(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, number):
        return number, x()


@case(RuntimeError, "Sharing a CUDA tensor with another process " + HERE + "; send tensor.cpu()")
def worker_that_returns_a_tensor():
    for _ in torch.utils.data.DataLoader(OnTheDevice(), num_workers=1, multiprocessing_context="spawn", timeout=60):
        pass


@case(RuntimeError, "torch.cuda.Event.ipc_handle " + HERE)
def sharing_an_event():
    torch.cuda.Event(interprocess=True).ipc_handle()


# Code that is compiled


@case(UserWarning, "torch.compile " + HERE + "; the code runs uncompiled", since=(2, 0))
def compile():
    assert torch.compile(lambda a: a + 1)(x()).device.type == "cuda"


@case(UserWarning, "asks for devices, and compiled code does not see them in this session")
def torchscript_that_asks_for_devices():
    def halves(a):
        b = torch.zeros(3, device="cuda") if a.is_cuda else torch.ones(3)
        return a.cpu(), (a + b).to("cuda:0"), str(a.device)

    host, there, name = torch.jit.script(halves)(x())
    assert host.device.type == "cpu" and there.device.type == "cuda" and name == "cuda:0" and there.sum().item() == 9


@case(None, None)
def torchscript():
    module = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())).to("cuda")
    assert isinstance(module, torch.jit.ScriptModule) and module(x()).device.type == "cuda"
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(torch.nn.Linear(3, 3).cuda(), x()), file)
    file.seek(0)
    assert torch.jit.load(file, map_location="cuda")(x()).device.type == "cuda"


@case(RuntimeError, "A compiled module that asks for devices " + HERE)
def torchscript_of_a_file():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self, a):
            return self.weight + a if a.is_cuda else a

    file = io.BytesIO()
    torch.jit.save(torch.jit.script.__wrapped__(Module()), file)  # as PyTorch outside a session writes it
    file.seek(0)
    torch.jit.load(file).cuda()


@case(RuntimeError, "A copy between devices in torch.jit.trace " + HERE + "; move the tensors before")
def copy_in_a_trace():
    torch.jit.trace(lambda a: a.cuda() * 2, torch.ones(3))


@case(RuntimeError, "torch.export.export of tensors on a CUDA device " + HERE + "; export on the CPU: module.cpu()", since=(2, 1))
def export():
    torch.export.export(torch.nn.Linear(3, 3).cuda(), (x(),))


SETUPTOOLS = importlib.util.find_spec("setuptools") and importlib.util.find_spec("setuptools.command")


@case(RuntimeError, "An extension in CUDA (torch.utils.cpp_extension) " + HERE + "; build its C++ part alone, with CppExtension", until=(9, 0) if SETUPTOOLS else (0, 0))
def extension():
    from torch.utils import cpp_extension
    os.environ["CUDA_HOME"] = "/usr"
    cpp_extension.CUDAExtension("name", ["kernel.cu"])


@case(RuntimeError, "A kernel of torch.cuda.jiterator " + HERE)
def jiterator():
    kernel = torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }")
    kernel(x())


@case(UserWarning, "CUDA is not available, disabling CUDA profiling")
def profile():
    from torch.profiler import ProfilerActivity
    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        x() @ x()
    assert any(event.key == "aten::mm" for event in found.key_averages())


@case(RuntimeError, "A profile of CUDA alone " + HERE + "; add torch.profiler.ProfilerActivity.CPU")
def profile_of_cuda_alone():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        pass


# Kinds of tensors


@case(None, None)
def sparse_and_complex():
    coo, csr = x().to_sparse(), x().to_sparse_csr()
    assert coo.device == csr.device == (coo @ x()).device == (csr @ x()).device == csr.values().device == coo.coalesce().indices().device == x().device
    z = torch.complex(x(), x())
    assert z.type() == "torch.cuda.ComplexFloatTensor" and torch.fft.fft(z).device == (z @ z).abs().device == torch.view_as_real(z).device == x().device


@case(RuntimeError, "Expected all tensors to be on the same device")
def sparse_on_two_devices():
    x().to_sparse() @ x().cpu()


@case(RuntimeError, "torch.cuda.sparse.FloatTensor " + HERE + "; use torch.sparse_coo_tensor with device=\"cuda\"")
def older_sparse_type():
    torch.cuda.sparse.FloatTensor(2, 3)


@case(None, None)
def quantised():
    q = torch.quantize_per_tensor(x(), 0.5, 0, torch.quint8)
    assert q.device == q.dequantize().device == x().device and q.dequantize().sum().item() == 9


@case(NotImplementedError, "Could not run 'quantized::add' with arguments from the 'QuantizedCUDA' backend.")
def arithmetic_of_quantised_tensors():
    q = torch.quantize_per_tensor(x(), 0.5, 0, torch.quint8)
    torch.ops.quantized.add(q, q, 0.5, 0)


@case(RuntimeError, "An MKL-DNN tensor on a CUDA device " + HERE)
def tensor_of_another_library():
    x().to_mkldnn()


@case(RuntimeError, "A nested tensor with layout=torch.jagged on a CUDA device " + HERE + "; use layout=torch.strided", since=(2, 3))
def jagged_tensor():
    torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="cuda", layout=torch.jagged)


@case(None, None)
def nested_tensor():
    assert torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="cuda").device == x().device


@case(RuntimeError, "torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9", since=(2, 2))
def product_of_fp8():
    a = x(16, torch.float8_e4m3fn)
    one = torch.tensor(1.0, device="cuda")
    torch._scaled_mm(a, a.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


@case(RuntimeError, "\"addmm_cuda\" not implemented for 'Long'")
def product_of_integers():
    x(3, torch.int64) @ x(3, torch.int64)


# Older names


@case(None, None)
def older_constructors():
    cuda = torch.cuda
    assert torch.Tensor(2, 3).device.type == "cpu" and torch.Tensor([1, 2]).tolist() == [1, 2] and torch.nn.Parameter(torch.Tensor(4)).shape == (4,)
    assert cuda.FloatTensor(2, 3).is_cuda and cuda.LongTensor([1, 2]).tolist() == [1, 2] and cuda.FloatTensor(3, device="cuda:0").device.index == 0
    assert not isinstance(torch.ones(1), cuda.FloatTensor) and isinstance(x(), cuda.FloatTensor) and not isinstance(x(), cuda.HalfTensor)


@case(TypeError, "expected torch.cuda.FloatTensor (got torch.FloatTensor)")
def older_constructor_with_a_tensor_of_the_cpu():
    torch.cuda.FloatTensor(torch.ones(3))


@case(RuntimeError, "legacy constructor expects device type: cpu but device type: cuda was passed")
def older_constructor_with_a_device():
    torch.Tensor(3, device="cuda")


@case(None, None)
def default_tensor_type():
    torch.set_default_tensor_type(torch.cuda.DoubleTensor)
    try:
        made = torch.Tensor(2), torch.ones(2), torch.tensor([1.0]), torch.nn.Linear(2, 2).weight, torch.rand(2)
        assert all(t.is_cuda and t.dtype is torch.float64 for t in made) and torch.FloatTensor(2).device.type == "cpu"
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(2).device.type == torch.Tensor(2).device.type == "cpu" and torch.ones(2).dtype is torch.float32


# Generators, indices, devices, memory: PyTorch's own errors

for name in ("normal_", "uniform_", "random_", "exponential_"):
    case(RuntimeError, "Expected a 'cuda' device type for generator but found 'cpu'")(lambda name=name: getattr(x(), name)(generator=torch.Generator()))
for name in ("bernoulli", "poisson", "multinomial"):
    arguments = (1,) if name == "multinomial" else ()
    case(RuntimeError, "Expected a 'cuda' device type for generator but found 'cpu'")(
        lambda name=name, arguments=arguments: getattr(torch, name)(x(), *arguments, generator=torch.Generator()))


@case(RuntimeError, "Expected a 'cpu' device type for generator but found 'cuda'")
def generator_of_the_other_device():
    torch.ones(3).normal_(generator=torch.Generator("cuda"))


@case(RuntimeError, "indices should be either on cpu or on the same device as the indexed tensor (cpu)")
def index_of_another_device():
    torch.ones(3)[torch.tensor([0], device="cuda")]


@case(RuntimeError, "assigned grad has data of a different type")
def gradient_of_another_device():
    x().requires_grad_().grad = torch.ones(3, 3)


@case(RuntimeError, "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!")
def addition_on_two_devices():
    x() + x().cpu()


@case(RuntimeError, "(when checking argument for argument mat1 in method wrapper_%saddmm)" % ("CUDA_" if VERSION >= (2, 0) else ""), until=(2, 9))
def layer_on_another_device():
    torch.nn.Linear(3, 3)(x())


@case(RuntimeError, "got mat1 is on cuda:0, different from other tensors on cpu (when checking argument in method wrapper_CUDA_addmm)", since=(2, 9))
def layer_on_another_device_of_newer_versions():
    torch.nn.Linear(3, 3)(x())


@case(RuntimeError, "CUDA error: invalid device ordinal")
def device_that_is_not_there():
    torch.ones(3, device="cuda:7")


@case(RuntimeError, "are unsafe to autocast")
def loss_in_autocast():
    with torch.cuda.amp.autocast():
        torch.nn.functional.binary_cross_entropy(x() / 2, x())


OLD_TEXT = ("CUDA out of memory. Tried to allocate 2.00 TiB (GPU 0; 12.00 GiB total capacity; ", " reserved in total by PyTorch) If reserved memory is >> "
            "allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF")
TEXT = (". GPU 0 has a total capacity of 12.00 GiB of which ", " is free. Including non-PyTorch memory, this process has ", " memory in use. Of the allocated memory ",
        " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
        "to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)")


@case(torch.cuda.OutOfMemoryError, "CUDA out of memory. Tried to allocate 2048.00 GiB")
def out_of_memory():
    try:
        torch.empty(2 << 40, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        for part in OLD_TEXT[1:] if VERSION < (2, 1) else TEXT:
            assert part in str(error), error
        raise


def alone(variables, message):
    """A setting of the allocator is read once, so another process reads it."""
    import subprocess
    program = "import torch; torch.ones(3, device='cuda'); torch.ones(3, device='cuda')"
    done = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, **variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = done.stderr.decode()
    assert done.returncode == 0 and text.count("UserWarning: ") == (1 if message else 0) and (not message or message in text), text


@case(None, None)
def settings_of_the_allocator():
    alone({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128,expandable_segments:False"}, None)
    alone({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, "expandable_segments:True of PyTorch's allocator is not modelled in this session")
    alone({"PYTORCH_CUDA_ALLOC_CONF": "garbage_collection_threshold:0.8", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
          "garbage_collection_threshold:0.8 and PYTORCH_NO_CUDA_MEMORY_CACHING of PyTorch's allocator is not modelled")


def run(name, program, kind, message):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            program()
        except Exception as error:
            if not (isinstance(kind, type) and isinstance(error, kind) and message in str(error)):
                return "%s: %s" % (type(error).__name__, error)
            return None
    texts = [str(w.message) for w in seen]
    if kind is None:
        return None
    if issubclass(kind, Warning) and sum(message in text for text in texts) == 1:
        return None
    return "neither %s nor a warning: %s" % (kind.__name__, texts)


@case(RuntimeError, "torch.ops.higher_order.flex_attention " + HERE, since=(2, 6))
def flex_attention():
    from torch.nn.attention.flex_attention import flex_attention
    part = torch.ones(1, 1, 16, 16, device="cuda")
    flex_attention(part, part, part)


def main():
    failed = 0
    for name, program, kind, message in CASES:
        why = run(name, program, kind, message)
        if why:
            failed += 1
            print("%s: %s" % (name if name != "<lambda>" else message, why))
    print("%d programs, %d of them with another result" % (len(CASES), failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
