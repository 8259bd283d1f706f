"""autocast("cuda") and the gradient scaler. The CPU's autocast casts what both cast to the lower precision; what only CUDA
computes in float32, like softmax and layer_norm, is added here. Operations that the CPU lacks for float16 are computed
in float32, as tensor cores accumulate, and their results are rounded."""
import threading
import warnings

from . import errors

# What CUDA's autocast computes in float32, by overload, unless the CPU's does so itself.
FLOAT32 = (
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh", "tan",
    "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "native_layer_norm", "native_group_norm", "cumprod", "cumsum", "prod",
    "prod.dim_int", "sum", "sum.dim_IntList", "_softmax", "_log_softmax", "softmax.int", "log_softmax.int", "layer_norm", "group_norm", "l1_loss",
    "smooth_l1_loss", "huber_loss", "mse_loss", "nll_loss", "nll_loss2d", "soft_margin_loss", "binary_cross_entropy_with_logits", "kl_div",
    "norm.Scalar", "norm.ScalarOpt_dim", "logsumexp", "dist", "cosine_similarity",
)


# What it computes in the lower precision. Old CPU builds know bfloat16 alone, so these are replaced there.
LOWER = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input", "mm", "bmm", "addmm", "addbmm",
         "baddbmm", "linear", "matmul")


class Region(threading.local):
    depth = 0  # 1 in a region of CUDA's autocast
    dtype = None


def install(torch, devices):
    region = Region()
    takes_half = knows_half(torch)
    autocast(torch, region, takes_half)
    kernels(torch, region, takes_half)
    scaler(torch)


def knows_half(torch):
    before = torch.get_autocast_cpu_dtype()
    try:
        torch.set_autocast_cpu_dtype(torch.float16)
    except RuntimeError:
        return False
    torch.set_autocast_cpu_dtype(before)
    return True


def autocast(torch, region, takes_half):
    from torch.amp import autocast_mode

    kind = autocast_mode.autocast
    enter, leave = kind.__enter__, kind.__exit__

    def cuda(self):
        return getattr(self, "device", getattr(self, "device_type", None)) == "cuda"

    if errors.version(torch) >= (2, 4):
        def state():
            return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

        def put(enabled, dtype):
            torch.set_autocast_enabled("cpu", enabled)
            torch.set_autocast_dtype("cpu", dtype)
    else:
        def state():
            return torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()

        def put(enabled, dtype):
            torch.set_autocast_cpu_enabled(enabled)
            torch.set_autocast_cpu_dtype(dtype)

    def __enter__(self):
        result = enter(self)
        if cuda(self) and not torch._jit_internal.is_scripting():
            self.cosplay_before = state() + (region.depth, region.dtype)
            put(self._enabled, self.fast_dtype if takes_half else torch.bfloat16)
            region.depth, region.dtype = 1 if self._enabled else 0, self.fast_dtype
        return result

    def __exit__(self, *error):
        if cuda(self):
            enabled, dtype, region.depth, region.dtype = self.cosplay_before
            put(enabled, dtype)
        return leave(self, *error)

    kind.__enter__, kind.__exit__ = __enter__, __exit__


def kernels(torch, region, takes_half):
    library = torch.library.Library("aten", "IMPL", "AutocastCPU")
    float32, low = torch.float32, (torch.float16, torch.bfloat16)
    Tensor = torch.Tensor
    is_enabled, enable = torch.is_autocast_cpu_enabled, torch.set_autocast_cpu_enabled
    if errors.version(torch) >= (2, 4):
        is_enabled, enable = lambda: torch.is_autocast_enabled("cpu"), lambda on: torch.set_autocast_enabled("cpu", on)

    def cast(value):
        if isinstance(value, Tensor):
            return value.to(float32) if value.dtype in low else value
        if type(value) in (list, tuple):
            return type(value)([cast(part) for part in value])
        return value

    def lower(value):
        dtype = region.dtype if region.depth else torch.get_autocast_cpu_dtype()
        return value.to(dtype) if isinstance(value, Tensor) and (value.dtype is float32 or value.dtype in low) else value

    def kernel(operator, cast, always=False):
        def run(*args, **kwargs):
            before = is_enabled()
            enable(False)  # else this kernel would run again
            try:
                if always or region.depth:
                    args = [cast(arg) for arg in args]
                    kwargs = {name: cast(value) for name, value in kwargs.items()}
                return operator(*args, **kwargs)
            finally:
                enable(before)

        return run

    for name in FLOAT32:
        packet, _, overload = name.partition(".")
        operator = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
        registered = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", lambda *args: False)
        if operator is None or registered("aten::" + name, "AutocastCPU"):
            continue
        library.impl(name, kernel(operator, cast))
    if not takes_half:
        for name in LOWER:
            packet, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if operator is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # PyTorch warns that they are replaced
                    library.impl(name, kernel(operator, lower, True))
    kernels.library = library  # its kernels are removed with it


def half(torch):
    """Runs an operation that the CPU lacks for float16 in float32. Returns a function for the mode."""
    Tensor, float16, float32 = torch.Tensor, torch.float16, torch.float32

    def widen(value, changed):
        if isinstance(value, Tensor):
            if value.dtype is float16:
                wide = value.to(float32)
                changed.append((value, wide))
                return wide
        elif type(value) in (list, tuple):
            return type(value)(widen(part, changed) for part in value)
        elif value is float16:
            return float32
        return value

    def narrow(value):
        if isinstance(value, Tensor):
            return value.to(float16) if value.dtype is float32 else value
        if type(value) in (list, tuple):
            return type(value)(narrow(part) for part in value)
        return value

    def run(func, args, kwargs, error):
        text = str(error)
        if "'Half'" not in text or "not implemented" not in text and "not supported" not in text:
            raise error
        changed = []
        wide = [widen(arg, changed) for arg in args], {name: widen(value, changed) for name, value in kwargs.items()}
        if not changed:
            raise error
        result = func(*wide[0], **wide[1])
        returned = {id(part): before for before, part in changed}
        mutable = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        if mutable:
            for before, part in changed:
                before.copy_(part)
            return returned.get(id(result), result)
        return narrow(result)

    return run


def scaler(torch):
    """What the scaler needs where the CPU build has no kernel for it."""
    has = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)
    if has and has("aten::_amp_foreach_non_finite_check_and_unscale_", "CPU"):
        return

    def unscale(gradients, found, inverse):
        for gradient in gradients:
            if not bool(torch.isfinite(gradient).all()):
                found.fill_(1.0)
            if float(inverse) != 1.0:
                gradient.mul_(inverse)

    def update(scale, tracker, found, growth, backoff, interval):
        if float(found):
            scale.mul_(backoff)
            tracker.zero_()
        elif int(tracker) + 1 == interval:
            grown = scale * growth
            if bool(torch.isfinite(grown)):
                scale.copy_(grown)
            tracker.zero_()
        else:
            tracker.add_(1)
        return scale

    torch._amp_foreach_non_finite_check_and_unscale_ = unscale
    torch._amp_update_scale_ = update
