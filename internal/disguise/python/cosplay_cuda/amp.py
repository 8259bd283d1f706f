"""autocast("cuda") and the gradient scaler. The CPU's autocast casts what both cast to the lower precision; what only CUDA
computes in float32, like softmax and layer_norm, is added here."""
import functools
import threading
import warnings

from . import casts, errors, provided, recurrent

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
    get, put = torch.get_autocast_cpu_dtype, torch.set_autocast_cpu_dtype
    if errors.version(torch) >= (2, 4):
        get, put = functools.partial(torch.get_autocast_dtype, "cpu"), functools.partial(torch.set_autocast_dtype, "cpu")
    before = get()
    try:
        put(torch.float16)
    except RuntimeError:
        return False
    put(before)
    return True


def autocast(torch, region, takes_half):
    from torch.amp import autocast_mode

    kind = autocast_mode.autocast
    enter, leave = kind.__enter__, kind.__exit__

    def cuda(self):
        return str(getattr(self, "device", getattr(self, "device_type", None))).partition(":")[0] == "cuda"

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

    def each(value, change):
        if isinstance(value, Tensor):
            return change(value)
        if type(value) in (list, tuple):
            return type(value)([each(part, change) for part in value])
        return value

    def widen(args, kwargs):
        return lambda tensor: tensor.to(float32) if tensor.dtype in low else tensor

    def lower(args, kwargs):
        dtype = region.dtype if region.depth else torch.get_autocast_cpu_dtype()
        return lambda tensor: tensor.to(dtype) if tensor.dtype is float32 or tensor.dtype in low else tensor

    def promote(args, kwargs):
        found = []
        each([*args, *kwargs.values()], lambda tensor: found.append(tensor.dtype))
        return widen(args, kwargs) if float32 in found else keep(args, kwargs)

    def keep(args, kwargs):
        return lambda tensor: tensor

    def refuse(args, kwargs):
        raise RuntimeError(casts.UNSAFE_TEXT)

    def kernel(operator, inside, outside):
        def run(*args, **kwargs):
            before = is_enabled()
            enable(False)  # else this kernel would run again
            try:
                change = (inside if region.depth else outside)(args, kwargs)
                return operator(*each(list(args), change), **{name: each(value, change) for name, value in kwargs.items()})
            finally:
                enable(before)

        return run

    def asking(operator, outside):
        """Asks for the result in float32 of operands as they are."""
        place = [argument.name for argument in operator._schema.arguments].index("dtype")
        ask = kernel(operator, keep, outside)

        def run(*args, **kwargs):
            if region.depth and (args[0].dtype is float32 or args[0].dtype in low) and kwargs.get("dtype") is None and len(args) <= place:
                kwargs["dtype"] = float32
            return ask(*args, **kwargs)

        return run

    def through(operator, outside):
        composite = functools.partial(operator._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)
        beyond = kernel(operator, keep, outside)
        return lambda *args, **kwargs: (composite if region.depth else beyond)(*args, **kwargs)

    known = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", lambda *args: False)

    def put(names, inside, replacing=None):
        """Adds kernels. replacing is what the CPU does outside a region of CUDA; None leaves the CPU's kernels if there are any.
        inside is what is done to the operands, or makes the kernel."""
        makes = inside in (asking, through)
        for name in names:
            packet, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            there = operator is not None and known("aten::" + name, "AutocastCPU")
            if operator is None or there and replacing is None and not makes:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch warns that they are replaced
                operator = getattr(torch, packet) if packet in recurrent.GATES or packet in recurrent.CELLS else operator
                outside = promote if name in casts.CPU_PROMOTES else (replacing or widen) if there else keep
                library.impl(name, inside(operator, outside) if makes else kernel(operator, inside, outside))

    put(casts.FLOAT32, widen)
    put(casts.INTO_FLOAT32, asking)
    put(casts.THROUGH, through)
    put([name for name in casts.FLOAT32_SINCE if hasattr(torch.ops.aten, name.partition(".")[0]) and known("aten::" + name, "AutocastCUDA")], widen)
    put(casts.LOWER, lower)
    put(casts.PROMOTE, promote, widen)
    put(casts.AS_IS, keep, widen)
    put(casts.UNSAFE, refuse, widen)
    if not takes_half:
        put(casts.LOWER_TOO, lower, lower)
    kernels.library = library  # its kernels are removed with it


def scaler(torch):
    """What the scaler needs where the CPU has no kernel for it. Each is one operation, which a CUDA graph can record."""

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

    provided.kernels(torch, {"_amp_foreach_non_finite_check_and_unscale_": unscale, "_amp_update_scale_": update})
