"""PyTorch's older names: torch.cuda.FloatTensor and the others, torch.Tensor(sizes), and set_default_tensor_type."""
import functools
import warnings

from . import errors
from .storages import CPU


def types_of(torch):
    """The dtypes of PyTorch's older names, by these: torch.FloatTensor."""
    names = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8", "Char": "int8", "Short": "int16",
             "Int": "int32", "Long": "int64", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128"}
    return {"torch.%sTensor" % name: getattr(torch, dtype) for name, dtype in names.items()}


def install(torch, devices, types):
    class Kind(type):
        def __instancecheck__(cls, other):
            return isinstance(other, torch.Tensor) and other.dtype is cls.dtype and devices.of(other) >= 0

    warns = errors.version(torch) >= (2, 1)
    for name, dtype in types.items():
        short = name[len("torch."):]
        shown = "torch.cuda." + short

        def make(cls, *args, **kwargs):
            named = kwargs.pop("device", None)
            if warns:
                recommend(torch)
            index = devices.index("cuda" if named is None else named)
            if index is None or index < 0:
                raise RuntimeError("legacy constructor expects device type: cuda but device type: cpu was passed")
            return of(torch, devices, cls.dtype, index, args, cls.shown)

        of_pytorch = getattr(torch.cuda, short, None)
        if of_pytorch is None:
            continue
        kind = Kind(short, (), {
            "__new__": make, "dtype": dtype, "shown": shown, "is_cuda": True, "is_xpu": False, "is_sparse": False, "layout": torch.strided,
            "__module__": "torch.cuda"})
        setattr(torch.cuda, short, kind)
        torch._tensor_classes.discard(of_pytorch)
        torch._tensor_classes.add(kind)
    default_type(torch, devices)
    if errors.version(torch) < (2, 0):
        sizes(torch, devices)


def recommend(torch):
    if not recommended or torch.is_warn_always_enabled():
        recommended.append(True)
        warnings.warn("The torch.cuda.*DtypeTensor constructors are no longer recommended. It's best to use methods such as "
                      "torch.tensor(data, dtype=*, device='cuda') to create tensors.", stacklevel=3)


recommended = []  # whether PyTorch has warned


def of(torch, devices, dtype, index, args, shown):
    """What a type makes from its arguments: sizes, a sequence, a storage, or a tensor of this type, whose memory it shares."""
    device = devices.device(index)
    first = args[0] if args else None
    if not args or all(isinstance(arg, int) for arg in args) or isinstance(first, torch.Size):
        return torch.empty(*(args or (0,)), dtype=dtype, device=device)
    if isinstance(first, torch.Tensor):
        if first.dtype is not dtype or devices.of(first) < 0:
            raise TypeError("expected %s (got %s)" % (shown, first.type()))
        return first.detach()
    if hasattr(first, "data_ptr") and hasattr(first, "device"):  # a storage
        return torch.empty(0, dtype=dtype, device=first.device).set_(first)
    if isinstance(first, (float, complex, str)):
        raise TypeError("new(): data must be a sequence (got %s)" % type(first).__name__)
    return torch.tensor(first, dtype=dtype, device=device)


def sizes(torch, devices):
    """Replaces torch.Tensor(2, 3): it is on the device of the default type. PyTorch 1.13 cannot run it within a mode."""
    new = torch.Tensor.__new__
    if hasattr(new, "cosplay"):
        return

    @functools.wraps(new)
    def make(cls, *args, **kwargs):
        named, index = kwargs.get("device"), devices.default
        if named is not None and devices.index(named) is not None:
            wanted = devices.index(named)
            if (wanted >= 0) != (index >= 0):
                raise RuntimeError("legacy constructor expects device type: %s but device type: %s was passed"
                                   % (("cuda", "cpu") if index >= 0 else ("cpu", "cuda")))
            index, kwargs["device"] = wanted, devices.cpu
        guard = torch._C._DisableTorchDispatch()
        try:
            result = new(cls, *args, **kwargs)
        finally:
            del guard
        shares = args and isinstance(args[0], torch.Tensor)
        if index >= 0 and not shares:
            devices.put(result, index)
            devices.booking.keep(result)
        return result

    make.cosplay = True
    torch.Tensor.__new__ = staticmethod(make)


def default_type(torch, devices):
    """set_default_tensor_type with a type of CUDA decides where tensors are, and leaves PyTorch's own default on the CPU."""
    set_type = torch.set_default_tensor_type

    @functools.wraps(set_type)
    def set_default_tensor_type(kind):
        name = kind if isinstance(kind, str) else getattr(kind, "__module__", "torch") + "." + kind.__name__
        devices.by_type = name.startswith("torch.cuda.")
        if devices.by_type:
            torch.cuda._lazy_init()
            sizes(torch, devices)
            kind = name.replace("torch.cuda.", "torch.")
        return set_type(kind)

    torch.set_default_tensor_type = set_default_tensor_type
    torch._C._get_default_device = lambda: "cuda" if devices.by_type else "cpu"  # which str(tensor) leaves out
