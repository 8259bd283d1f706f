"""Takes from PyTorch what the session's GPU would not have. It runs right after
the import of torch and sets switches only: CUDA is not started, so that a
program can still fork."""
import json
import os
import sys
import threading
import warnings

# What PyTorch calls the number formats of the catalog. The scales of the MX
# formats came with FP4.
DTYPES = {
    "bf16": ("bfloat16",),
    "fp8": ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
    "fp4": ("float4_e2m1fn_x2", "float8_e8m0fnu"),
}


def prepare(torch):
    with open(os.path.join(os.path.dirname(__file__), "session.json")) as file:
        session = json.load(file)
    if session.get("compute") in ("cpu", "shapes"):
        import cosplay_cuda  # beside this file

        if not cosplay_cuda.install(torch, session):
            return
    elif "capability" in session:
        show_target(torch, session)
    if "tf32" in session["lacks"]:
        without_tf32(torch)
    if session["strict"]:
        be_strict(torch, session)


class Properties:
    """The properties of a real device, with those of the target where it has them."""

    def __init__(self, real, session):
        self.real = real
        self.name, self.total_memory = session["target"], session["memory_mib"] << 20
        self.major, self.minor = (int(part) for part in session["capability"].split("."))
        self.multi_processor_count = session["sms"] or real.multi_processor_count

    def __getattr__(self, name):
        return getattr(self.real, name)

    def __repr__(self):
        return "_CudaDeviceProperties(name='%s', major=%d, minor=%d, total_memory=%dMB, multi_processor_count=%d)" % (
            self.name, self.major, self.minor, self.total_memory >> 20, self.multi_processor_count)


def show_target(torch, session):
    """Programs on hardware get the target's properties. PyTorch and Triton, which compile and choose kernels by them, get
    the GPU's: code for the target's capability might not run there."""
    real_properties, real_capability = torch.cuda.get_device_properties, torch.cuda.get_device_capability

    def of_compiler(frame):
        return frame.f_globals.get("__name__", "").partition(".")[0] in ("torch", "triton")

    def get_device_properties(*args, **kwargs):
        real = real_properties(*args, **kwargs)
        return real if of_compiler(sys._getframe(1)) else Properties(real, session)

    def get_device_capability(*args, **kwargs):
        real = real_capability(*args, **kwargs)
        return real if of_compiler(sys._getframe(1)) else tuple(int(part) for part in session["capability"].split("."))

    torch.cuda.get_device_properties, torch.cuda.get_device_capability = get_device_properties, get_device_capability


def without_tf32(torch):
    # The older switches: every PyTorch since 1.7 has them, where later ones only
    # remark that there are newer. To mix both is an error there.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(torch.backends.cuda, "matmul"):
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        if hasattr(torch, "set_float32_matmul_precision"):
            torch.set_float32_matmul_precision("highest")


def be_strict(torch, session):
    """Make it an error to have a tensor on the GPU whose dtype that GPU lacks."""
    lacking = {
        getattr(torch, name)
        for lack in session["lacks"]
        for name in DTYPES.get(lack, ())
        if hasattr(torch, name)
    }
    if not lacking:
        return
    try:
        from torch.overrides import TorchFunctionMode
    except ImportError:
        raise RuntimeError(
            "the session says strict = true, which takes PyTorch 1.13 or later, and this is %s; "
            "install a later one, or take strict out of the session's block" % torch.__version__
        )

    def check(result):
        if isinstance(result, torch.Tensor):
            if result.dtype in lacking and result.is_cuda:
                raise RuntimeError(
                    "%s has no %s, and the session says strict = true; use another dtype, like torch.float16, "
                    "or take strict out of the session's block" % (session["target"], result.dtype)
                )
        elif isinstance(result, (tuple, list)):
            for part in result:
                check(part)

    class Strict(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            check(result)
            return result

    # For good, in each thread of Python: a mode belongs to its thread.
    run = threading.Thread._bootstrap_inner

    def bootstrap(self):
        with Strict():
            run(self)

    threading.Thread._bootstrap_inner = bootstrap
    Strict().__enter__()
    if torch.bfloat16 in lacking:
        torch.cuda.is_bf16_supported = lambda *args, **kwargs: False  # so that who asks takes another
