"""A stand-in for PyTorch, by its documentation: dtypes, function modes, the
switches of TF32 with all of them on, and what starts CUDA. Importing it starts
nothing."""
import functools
import warnings

__version__ = "2.9.0"


class dtype:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "torch." + self.name


float32, float16, bfloat16, int8 = dtype("float32"), dtype("float16"), dtype("bfloat16"), dtype("int8")
float8_e4m3fn, float8_e5m2, float8_e8m0fnu = dtype("float8_e4m3fn"), dtype("float8_e5m2"), dtype("float8_e8m0fnu")
float4_e2m1fn_x2 = dtype("float4_e2m1fn_x2")

_modes = []
_autocast = []


def overridable(function):
    """A function of the API: the innermost mode has it, and itself runs without modes."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not _modes:
            return function(*args, **kwargs)
        mode = _modes.pop()
        try:
            return mode.__torch_function__(call, (), args, kwargs)
        finally:
            _modes.append(mode)

    return call


class Tensor:
    def __init__(self, dtype, device):
        if device == "cuda":
            cuda._lazy_init()
        self.dtype, self.device = dtype, device

    @property
    def is_cuda(self):
        return self.device == "cuda"

    @overridable
    def to(self, device=None, dtype=None):
        return Tensor(dtype or self.dtype, device or self.device)

    def bfloat16(self):
        return self.to(dtype=bfloat16)

    @overridable
    def __matmul__(self, other):
        return Tensor(_autocast[-1] if _autocast else self.dtype, self.device)

    @overridable
    def split(self, size):
        return (Tensor(self.dtype, self.device), Tensor(self.dtype, self.device))


@overridable
def zeros(size, dtype=float32, device="cpu"):
    return Tensor(dtype, device)


class autocast:
    def __init__(self, device, dtype):
        self.dtype = dtype

    def __enter__(self):
        _autocast.append(self.dtype)

    def __exit__(self, *error):
        _autocast.pop()


_precision = "high"


def set_float32_matmul_precision(precision):
    global _precision
    warnings.warn("please use the new API settings to control TF32 behavior")
    _precision = precision


def get_float32_matmul_precision():
    return _precision


from torch import backends, cuda, overrides  # noqa: E402
