"""What tensors and storages say of their device, and how they move between devices."""
from . import errors, legacy
from .booking import UNSET
from .storages import CPU, Tag


def install(torch, devices, memory):
    Tensor, base = torch.Tensor, torch._C._TensorBase
    tag_of, find, move, of = devices.tag_of, devices.index, devices.move, devices.of
    local, cpu = devices.local, devices.cpu
    c_device, c_is_cuda, c_is_cpu = base.device.__get__, base.is_cuda.__get__, base.is_cpu.__get__
    c_to, c_type, c_copy, c_set, c_numpy, c_tolist = base.to, base.type, base.copy_, base.set_, base.numpy, base.tolist
    types, forward = legacy.types_of(torch), torch.autograd.forward_ad

    def device(self):
        tag = tag_of(self)
        if tag is None or tag.index < 0:
            return c_device(self)
        return devices.known.get(tag.index) or devices.device(tag.index)

    def is_cuda(self):
        tag = tag_of(self)
        return tag is not None and tag.index >= 0 or c_is_cuda(self)

    def is_cpu(self):
        tag = tag_of(self)
        return c_is_cpu(self) if tag is None or tag.index < 0 else False

    def get_device(self):
        return of(self)

    # A mode of the program, as set_default_device enters one, gets the methods of PyTorch that are called here, and runs those
    # of Tensor in their place.

    def elsewhere(tensor):
        return of(tensor) < 0 and c_device(tensor).type != "cpu"

    def count(here, there, source):
        if here != there and not local.counted:
            devices.counters.copied(there, here, source)

    def to(self, *args, **kwargs):
        first = args[0] if args else None
        if isinstance(first, torch.dtype) or first is cpu and local.target != UNSET:
            return c_to(self, *args, **kwargs)
        rest = args[1:]
        other = first if isinstance(first, Tensor) else kwargs.pop("other", None)
        if other is not None:
            place, dtype = of(other), other.dtype
            if elsewhere(other):
                return c_to(self, other, *rest, **kwargs)
            if not isinstance(first, Tensor):
                rest = args
        else:
            named = first if args else kwargs.pop("device", None)
            place = of(self) if named is None else find(named)
            if place is None or elsewhere(self):
                return c_to(self, cpu if place is not None and named is not None else named, *rest, **kwargs)
            dtype = rest[0] if rest else kwargs.pop("dtype", None)
            rest = rest[1:]
        if place == of(self):
            if dtype is None:
                dtype = self.dtype
            return c_to(self, dtype, *rest, **kwargs)
        if len(rest) > 2:
            return c_to(self, *args, **kwargs)  # raises PyTorch's error
        unknown = set(kwargs) - {"non_blocking", "copy", "memory_format"}
        if unknown:
            return c_to(self, *args, **kwargs)
        if not (rest[0] if rest else kwargs.get("non_blocking")) and min(place, of(self)) < 0:
            devices.graphs.refuse()  # a copy that waits
        return move(self, place, dtype, kwargs.get("memory_format"))

    def cuda(self, device=None, non_blocking=False, memory_format=None):
        if device is None:
            device = "cuda"
        place = find(device)
        if place is None or place < 0:
            raise RuntimeError("Invalid device, must be cuda device")
        if memory_format is None:
            return to(self, devices.device(place), non_blocking=non_blocking)
        return to(self, devices.device(place), non_blocking=non_blocking, memory_format=memory_format)

    def to_cpu(self, memory_format=None):
        if memory_format is None:
            return to(self, cpu)
        return to(self, cpu, memory_format=memory_format)

    def type(self, dtype=None, non_blocking=False, **kwargs):
        if dtype is None:
            name = c_type(self)
            return name.replace("torch.", "torch.cuda.", 1) if of(self) >= 0 else name
        if isinstance(dtype, torch.dtype):
            return c_type(self, dtype, non_blocking, **kwargs)
        name = dtype if isinstance(dtype, str) else "%s.%s" % (dtype.__module__, dtype.__name__)
        wanted = types.get(name.replace("torch.cuda.", "torch."))
        if wanted is None:
            return c_type(self, dtype, non_blocking, **kwargs)
        if name.startswith("torch.cuda."):
            return to(self, devices.device(of(self)) if of(self) >= 0 else "cuda", wanted)
        return to(self, cpu, wanted)

    def type_as(self, other):
        return to(self, other)

    def copy_(self, source, non_blocking=False, **kwargs):
        if isinstance(source, Tensor):
            here, there = of(self), of(source)
            if here != there:
                count(here, there, source)
                if source.requires_grad and torch.is_grad_enabled() or forward._current_level >= 0:
                    source = move(source, here)
        before, local.counted = local.counted, True
        try:
            return c_copy(self, source, non_blocking, **kwargs)
        finally:
            local.counted = before

    def set_(self, source=None, *args, **kwargs):
        given = kwargs.get("source") if source is None else source
        device = getattr(getattr(given, "_untyped_storage", given), "device", None)  # that of a typed storage is deprecated, and warns
        if device is not None and device != self.device:
            raise RuntimeError("Attempted to set the storage of a tensor on device \"%s\" to a storage on different device \"%s\".  "
                               "This is no longer allowed; the devices must match." % (self.device, device))
        return c_set(self, *(() if source is None else (source,)), *args, **kwargs)

    def numpy(self, *args, **kwargs):
        index = of(self)
        if index >= 0 and not kwargs.get("force"):
            raise TypeError("can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
                            % errors.device_name(index))
        return c_numpy(self, *args, **kwargs)

    def tolist(self):
        if of(self) >= 0:
            devices.graphs.refuse()
        if self.dim():  # a number alone is an operation, which is counted there
            count(CPU, of(self), self)
        before, local.counted = local.counted, True
        try:
            return c_tolist(self)
        finally:
            local.counted = before

    def pin_memory(self, device=None):
        if of(self) >= 0:
            raise RuntimeError("cannot pin 'torch.cuda.%s' only dense CPU tensors can be pinned" % c_type(self).rpartition(".")[2])
        if is_pinned(self):
            return self
        with devices.on(CPU):
            result = self.clone()
        tag = tag_of(result)
        devices.tags.put(storage_of(result), Tag(CPU, pinned=True, hollow=tag is not None and tag.hollow))
        return result

    def is_pinned(self, device=None):
        tag = tag_of(self)
        if tag is not None and (tag.pinned or tag.index >= 0):
            return tag.pinned
        runtime = torch.cuda._cudart
        return bool(runtime.registered) and runtime.is_registered(self.data_ptr())

    storage_of = devices.tags.storage

    def new(name):
        original = getattr(base, name)

        def new_tensor(self, *args, **kwargs):
            named = kwargs.get("device")
            index = of(self) if named is None else find(named)
            if index is None:
                return original(self, *args, **kwargs)
            if named is not None:
                kwargs["device"] = cpu
            pinned = kwargs.pop("pin_memory", False)
            before, local.target = local.target, index
            try:
                result = original(self, *args, **kwargs)
            finally:
                local.target = before
            devices.put(result, index)
            if name == "new_tensor" and index >= 0:
                devices.booking.keep(result)
            return result.pin_memory() if pinned and index < 0 else result

        new_tensor.__name__ = name
        return new_tensor

    def on_host(name, answer):
        """A method that needs the host's memory; tensors of a GPU have another answer."""
        original = getattr(Tensor, name)

        def method(self, *args, **kwargs):
            return original(self, *args, **kwargs) if of(self) < 0 else answer(self)

        method.__name__ = name
        setattr(Tensor, name, method)

    c_grad, c_set_grad, c_delete_grad = base.grad.__get__, base.grad.__set__, base.grad.__delete__

    def set_grad(self, value):
        if isinstance(value, Tensor) and of(value) != of(self):
            raise RuntimeError("assigned grad has data %s" % (
                "located on a different device" if min(of(value), of(self)) >= 0 else "of a different type"))
        c_set_grad(self, value)

    def no_interface(self):
        raise AttributeError("a tensor of this session has no __cuda_array_interface__: its host has no GPU, and the CPU computes")

    def no_dlpack(self):
        raise BufferError("a CUDA tensor of this session cannot be exported by DLPack: its host has no GPU, and the CPU computes")

    for function in (device, is_cuda, is_cpu):
        put_attribute(Tensor, function.__name__, function)
    put_attribute(Tensor, "grad", c_grad, set_grad, c_delete_grad)
    Tensor.__cuda_array_interface__ = property(no_interface)
    for function in (get_device, to, cuda, type, type_as, copy_, set_, numpy, tolist, pin_memory, is_pinned):
        setattr(Tensor, function.__name__, function)
    Tensor.cpu = to_cpu
    for name in ("new", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros"):
        if hasattr(base, name):
            setattr(Tensor, name, new(name))
    on_host("share_memory_", lambda self: self)
    on_host("is_shared", lambda self: True)
    on_host("__dlpack__", no_dlpack)
    capsule = torch.utils.dlpack.to_dlpack

    def to_dlpack(tensor):
        return no_dlpack(tensor) if of(tensor) >= 0 else capsule(tensor)

    torch.utils.dlpack.to_dlpack = torch.to_dlpack = torch._C._to_dlpack = to_dlpack
    if hasattr(torch, "get_device"):
        torch.get_device = lambda input: of(input)  # another object than the method, which torch.fx relies on
    legacy.install(torch, devices, types)
    subclasses(torch, devices)
    if errors.version(torch) < (2, 0):
        as_subclass(torch)
    lazy(torch)
    storages(torch, devices, memory)


class Attribute(property):
    """An attribute in place of one in C. As there, it states its name and where it is defined: torch._dynamo asks for both when it is
    imported, and a property has no name before Python 3.13."""

    def __init__(self, name, owner, *functions):
        super().__init__(*functions)
        self.__name__, self.__objclass__ = name, owner


def put_attribute(kind, name, *functions):
    setattr(kind, name, Attribute(name, getattr(getattr(kind, name), "__objclass__", kind), *functions))


def as_subclass(torch):
    """PyTorch 1.13 cannot make a subclass of a tensor that its mode has seen, so the mode is off for the view that is made."""
    original = torch.Tensor.as_subclass

    def as_subclass(self, cls):
        guard = torch._C._DisableTorchDispatch()
        try:
            return original(self, cls)
        finally:
            del guard

    torch.Tensor.as_subclass = as_subclass


def lazy(torch):
    """The parameters of lazy modules refuse all methods but those of a list, which has PyTorch's own."""
    mixin = getattr(torch.nn.parameter, "UninitializedTensorMixin", None)
    if mixin is not None:
        names = ("to", "cuda", "cpu", "copy_", "get_device", "pin_memory", "is_pinned", "untyped_storage", "storage", "_storage")
        mixin._allowed_methods.extend(getattr(torch.Tensor, name) for name in names if hasattr(torch.Tensor, name))


def subclasses(torch, devices):
    """Tensors without memory, that wrap others. PyTorch's C++ code has no CUDA to find the device that they state."""
    Tensor, tags, cpu = torch.Tensor, devices.tags, devices.cpu

    def on(result, index):
        if index is not None and index >= 0:
            try:
                tags.put(tags.storage(result), Tag(index))
            except (RuntimeError, NotImplementedError):
                result._cosplay_tag = Tag(index)  # such a tensor has no storage in old versions
        return result

    def make(cls, *args, **kwargs):
        index = devices.index(kwargs.get("device"))
        if index is not None and index >= 0:
            kwargs["device"] = cpu
        return on(original(cls, *args, **kwargs), index)

    def make_distributed(cls, local, *args, **kwargs):
        return on(distributed(cls, local, *args, **kwargs), devices.of(local))

    original, distributed = Tensor._make_wrapper_subclass, getattr(Tensor, "_dtensor__new__", None)
    Tensor._make_wrapper_subclass = staticmethod(make)
    if distributed is not None:
        Tensor._dtensor__new__ = staticmethod(make_distributed)


def storages(torch, devices, memory):
    Storage = torch.UntypedStorage
    base = torch._C.StorageBase if hasattr(torch._C, "StorageBase") else Storage.__mro__[1]
    tags, cpu = devices.tags, devices.cpu
    c_device, c_resize, c_cpu, new = base.device.__get__, base.resize_, Storage.cpu, Storage.__new__

    def of(storage):
        tag = tags.of_storage(storage)
        return CPU if tag is None or tag.index < 0 else tag.index

    def book(storage, index):
        if index >= 0:
            tags.put(storage, memory.tag(index, storage.nbytes()))
        return storage

    def device(self):
        index = of(self)
        return c_device(self) if index < 0 else devices.device(index)

    def make(cls, *args, **kwargs):
        index = CPU
        if kwargs.get("device") is not None:
            index = devices.index(kwargs["device"])
            if index is None:
                return new(cls, *args, **kwargs)
            kwargs["device"] = cpu
        return book(new(cls, *args, **kwargs), index)

    def copy_to(storage, index, pinned=False):
        copied = book(new(Storage, storage.nbytes()), index)
        if pinned and index < 0:
            tags.put(copied, Tag(CPU, pinned=True))
        copied.copy_(storage, False)
        devices.counters.moved(of(storage), index, storage.nbytes())
        return copied

    def cuda(self, device=None, *args, **kwargs):
        index = devices.index("cuda" if device is None else device)
        return self if index == of(self) else copy_to(self, index)

    def to_cpu(self):
        return c_cpu(self) if of(self) < 0 else copy_to(self, CPU)

    def to(self, *args, **kwargs):
        device = kwargs.get("device", args[0] if args else None)
        index = devices.index(device)
        if index is None:
            raise errors.unsupported("A storage on %s" % (device,))
        return self if index == of(self) else copy_to(self, index, kwargs.get("non_blocking"))

    def resize_(self, size):
        index = of(self)
        if index < 0:
            return c_resize(self, size)
        new_tag = memory.tag(index, size)
        result = c_resize(self, size)
        old = tags.of_storage(self)
        old.block, new_tag.block = new_tag.block, old.block  # the old memory is released with the new tag
        old.release = old.release or new_tag.release
        new_tag.release = new_tag.release or old.release
        return result

    def no_sharing(self, *args, **kwargs):
        if of(self) < 0:
            raise RuntimeError("_share_cuda_: only available on CUDA")
        raise errors.unsupported("Sharing a CUDA tensor with another process", "send tensor.cpu()")

    Storage.__new__ = staticmethod(make)
    put_attribute(Storage, "device", device)
    put_attribute(Storage, "is_cuda", lambda self: of(self) >= 0)
    Storage.cuda, Storage.cpu, Storage.resize_, Storage._share_cuda_ = cuda, to_cpu, resize_, no_sharing
    if hasattr(Storage, "to"):
        Storage.to = to
