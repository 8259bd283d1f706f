"""Takes from PyTorch what the session's GPU would not have. It runs right after
the import of torch and sets switches only: CUDA is not started, so that a
program can still fork."""
import json
import os
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
    if session.get("compute") == "cpu":
        import cosplay_cuda  # beside this file

        cosplay_cuda.install(torch, session)
    if "tf32" in session["lacks"]:
        without_tf32(torch)
    if session["strict"]:
        be_strict(torch, session)


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

    Strict().__enter__()  # for good: in this thread, where programs make their tensors
    if torch.bfloat16 in lacking:
        torch.cuda.is_bf16_supported = lambda *args, **kwargs: False  # so that who asks takes another
