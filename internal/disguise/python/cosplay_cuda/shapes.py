"""compute = "shapes": an operation on a device is not computed. Its result has a shape, a dtype and a booking, and no values:
PyTorch's meta kernels infer the shape, and the memory is reserved and never touched.

A tensor without values is called hollow: each parameter of a module, each large tensor of a device, and each tensor that was made from
one of these. All others are computed as usual, so that a program can read its data. On a device these are masks, positions and lengths,
by which programs decide what they run."""
import mmap

from . import errors, inferred
from .storages import CPU, Tag

KEPT = 16 << 20  # bytes; a larger tensor of a device is hollow, so that no operation takes long
KEPT_REAL = 4 << 20  # of float32 and float64
WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
LARGE = 1 << 16  # bytes; from here on the memory of a tensor is mapped, so that the system need not have it
NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)

# Operations that PyTorch's schema calls copies, and that share the memory of their operand.
SHARING = frozenset(("_unsafe_view", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"))
# Operations that change the shape of their operand, not its values.
RESHAPING = frozenset(("set_", "record_stream"))
RESIZING = frozenset(("resize_", "resize_as_"))
# Operations that take the shape of their operand, not its values.
SIZED = frozenset(("empty_like", "full_like", "ones_like", "zeros_like", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros"))
MASKED = frozenset(("index", "_unsafe_index"))
MASKED_WRITES = frozenset(("index_put_", "_index_put_impl_", "index_put", "_unsafe_index_put"))


class Rule:
    """What an operation does with the memory of its operands, from its schema."""

    __slots__ = ("name", "shares", "reads", "checks", "masked", "written", "fresh", "named", "random", "plain", "sized", "sparse")

    def __init__(self, torch, func):
        schema = func._schema
        self.name = schema.name.split("::")[1]
        tags = getattr(func, "tags", ())
        tensors = [r for r in schema.returns if "Tensor" in str(r.type)]
        self.fresh = any(r.alias_info is None for r in tensors)
        self.written = [(at, a.name) for at, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
        self.masked = self.name in MASKED
        self.reads = not self.masked and (torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags
                                          or "to_sparse" in self.name or self.name == "nms")  # of torchvision, which has no tag
        self.checks = not schema.returns and not self.written and self.name not in RESHAPING
        self.shares = self.name not in RESIZING and (
            torch.Tag.inplace_view in tags or self.name in SHARING or self.name in RESHAPING or not self.fresh and not self.written)
        self.named = any(a.name == "device" for a in schema.arguments)
        self.random = torch.Tag.nondeterministic_seeded in tags
        self.sized = self.name in SIZED
        # The place of the argument that asks a backward pass for a sparse gradient, which no meta kernel makes.
        self.sparse = next((at for at, a in enumerate(schema.arguments) if a.name == "sparse"), None) if "backward" in self.name else None
        # Whether the operation makes no tensor, or one whose size only its values show.
        self.plain = not self.fresh or self.masked or self.reads and "to_sparse" not in self.name


class Shapes:
    def __init__(self, torch, tags):
        self.torch, self.tags, self.tag_of = torch, tags, tags.reader()
        self.Tensor = torch.Tensor
        self.aten = torch.ops.aten
        self.rules = {}
        self.kept = {getattr(torch, name): KEPT for name in WHOLE if hasattr(torch, name)}
        self.kept.update({torch.float32: KEPT_REAL, torch.float64: KEPT_REAL})
        self.graphs = None  # set by values.py
        self.all_selected = False  # whether masked_select returns all if its mask is hollow: its result is the operand of a mean

    def is_hollow(self, tensor):
        tag = self.tag_of(tensor)
        return tag is not None and tag.hollow

    def has_hollow(self, values):
        for value in values:
            if isinstance(value, self.Tensor):
                if self.is_hollow(value):
                    return True
            elif type(value) in (list, tuple) and self.has_hollow(value):
                return True
        return False

    def real_like(self, tensor):
        """Whether a tensor has no values and is of real numbers. Tensors like it, such as an optimizer's states, get such ones."""
        return tensor.is_floating_point() and self.is_hollow(tensor)

    def hollow_out(self, storage):
        """From now on what this memory contains is unknown."""
        tag = self.tags.of_storage(storage)
        if tag is None:
            self.tags.put(storage, Tag(CPU, hollow=True))
        else:
            tag.hollow = True

    def keeps(self, tensor):
        """Whether a tensor of a device has values if all that it is made from has."""
        return tensor.layout is self.torch.strided and tensor.numel() * tensor.element_size() <= self.kept.get(tensor.dtype, -1)

    def keep(self, result):
        """Marks the computed tensors of a device, which are booked and thus hollow so far."""
        for tensor in self.tensors(result):
            tag = self.tag_of(tensor)
            if tag is not None and self.keeps(tensor):
                tag.hollow = False

    def run(self, func, args, kwargs, target):
        """The result of an operation, and whether it is computed. If not, it is inferred."""
        rule = self.rules.get(func)
        if rule is None:
            rule = self.rules[func] = Rule(self.torch, func)
        known = rule.sized and target >= 0 and not self.real_like(args[0]) or not self.has_hollow(args) and not self.has_hollow(kwargs.values())
        if known and target < 0:
            return func(*args, **kwargs), True
        # A graph computes again in each run, of which nothing is seen here.
        known = known and not rule.random and self.graphs.local.graph is None and not has_nan(args) and not has_nan(kwargs.values())
        if known and rule.plain:
            return func(*args, **kwargs), True
        if rule.name == "masked_select" and rule.fresh and (self.all_selected or not self.is_hollow(args[1])):
            source, mask = self.torch.broadcast_tensors(*args)
            count = source.numel() if self.is_hollow(mask) else self.aten.nonzero.default(mask).size(0)
            result = self.aten.empty.memory_format([count], dtype=source.dtype, device="meta")
            return self.real(result, {}, target), False
        if rule.reads and rule.name not in inferred.ALWAYS:
            raise errors.no_values("Tensor.to_sparse()" if "to_sparse" in rule.name else READERS.get(rule.name, "torch." + rule.name))
        if rule.sparse is not None and args[rule.sparse:rule.sparse + 1] == (True,):
            raise errors.no_values("A sparse tensor, a gradient of nn.EmbeddingBag with sparse=True")
        if rule.checks:
            return None, False  # values that do not exist are right
        if rule.shares:
            return func(*args, **kwargs), False
        if rule.masked:
            args = (args[0], self.without_masks(*args))
        twins = {}
        result = self.infer(func, rule, args, kwargs, twins)
        if known and all(self.keeps(tensor) for tensor in self.tensors(result)):
            return func(*args, **kwargs), True
        result = self.real(result, twins, target)
        for at, name in rule.written:
            for tensor in self.tensors(args[at] if at < len(args) else kwargs.get(name)):
                if not self.is_hollow(tensor):
                    self.hollow_out(self.tags.storage(tensor))
        for original, meta in twins.values():
            if original.size() != meta.size():
                self.resize(original, meta)
        return result, False

    def without_masks(self, source, indices):
        """The indices of an operation with the places that a mask selects in place of the mask."""
        result = []
        for part in indices:
            if part is None or part.dtype not in (self.torch.bool, self.torch.uint8):
                result.append(part)
                continue
            if self.is_hollow(part):
                raise errors.no_values("Indexing with a boolean mask")
            of = source.size()[len(result):len(result) + part.dim()]
            if of != part.size():
                raise IndexError("The shape of the mask %s does not match the shape %s that it indexes" % (list(part.size()), list(of)))
            result.extend(self.aten.nonzero.default(part).unbind(1))
        return result

    def resize(self, tensor, meta):
        """Gives a tensor the shape that an operation has given to its twin. The mode books its memory."""
        tag = self.tag_of(tensor)
        larger = self.like(meta, 0)
        storage = self.tags.storage(larger)
        if storage.nbytes() <= self.tags.storage(tensor).nbytes():
            storage = self.tags.storage(tensor)
        else:
            self.tags.put(storage, Tag(tag.index, hollow=tag.hollow))
        self.aten.set_.source_Storage_storage_offset(tensor, storage, 0, meta.size(), meta.stride())

    def tensors(self, value):
        if isinstance(value, self.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for part in value:
                for tensor in self.tensors(part):
                    yield tensor

    def infer(self, func, rule, args, kwargs, twins):
        """The result of an operation in meta tensors: by its meta kernel, by a rule for its shape, or by its result on other values."""
        if rule.name in MASKED_WRITES and any(part is not None and part.dtype is self.torch.bool for part in args[1]):
            return args[0] if rule.written else self.twin(args[0], {})
        known = inferred.ALWAYS.get(rule.name)
        if known:
            return known(self, func, args)
        twin_kwargs = {name: value for name, value in kwargs.items() if name not in ("pin_memory", "generator")}
        if rule.named:
            twin_kwargs["device"] = "meta"
        if rule.name == "full" and twin_kwargs.get("dtype") is None:  # some old meta kernels make floats of whole numbers
            twin_kwargs["dtype"] = func([], args[1]).dtype
        try:
            result = func(*[self.twin(value, twins) for value in args],
                          **{name: self.twin(value, twins) for name, value in twin_kwargs.items()})
        except (NotImplementedError, TypeError):  # some old meta kernels fail on arguments that are right
            if not rule.fresh:
                return args[0] if func._schema.returns else None  # what is written keeps its shape
            if rule.name.startswith("_foreach_"):
                return inferred.foreach(self, func, args)
            return inferred.on_small(self, func, args, kwargs)
        return result

    def twin(self, value, twins):
        """The same argument with meta tensors. twins gets the original of each, by identity."""
        if isinstance(value, self.Tensor):
            if value.layout is not self.torch.strided:
                raise errors.no_values("A sparse tensor")
            meta = self.aten.empty_strided.default(value.size(), value.stride(), dtype=value.dtype, device="meta")
            twins[id(meta)] = value, meta
            return meta
        if type(value) in (list, tuple):
            return type(value)([self.twin(part, twins) for part in value])
        return value

    def real(self, value, twins, target):
        """The result for the program that a meta kernel's result stands for."""
        if isinstance(value, self.Tensor):
            known = twins.get(id(value))
            if known is not None:
                return known[0]
            return self.like(value, target) if value.is_meta else value
        if isinstance(value, (list, tuple)):
            return type(value)([self.real(part, twins, target) for part in value])
        return value

    def like(self, tensor, target):
        """A new hollow tensor with the shape of another. The mode books it if it is on a device."""
        if tensor.layout is not self.torch.strided:
            raise errors.no_values("A sparse tensor, such as a gradient of nn.Embedding with sparse=True")
        size, stride, dtype = tensor.size(), tensor.stride(), tensor.dtype
        if any(step == 0 and length > 1 for length, step in zip(size, stride)):
            stride = contiguous(size)  # kernels that compute return no expanded tensors
        count = 0 if 0 in size else 1 + sum((length - 1) * step for length, step in zip(size, stride))
        bytes = count * tensor.element_size()
        if bytes < LARGE:
            result = self.aten.empty_strided.default(size, stride, dtype=dtype, device="cpu")
        else:
            result = self.aten.empty.memory_format([0], dtype=dtype, device="cpu")
            self.aten.set_.source_Storage_storage_offset(result, self.reserve(bytes), 0, size, stride)
        if target < 0:
            self.hollow_out(self.tags.storage(result))
        return result

    def reserve(self, bytes):
        """A storage whose memory the system provides when it is touched, which nothing does."""
        try:
            pages = mmap.mmap(-1, bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
        except OSError:
            raise errors.no_addresses(bytes)
        return self.tags.storage(self.torch.frombuffer(pages, dtype=self.torch.uint8))


def has_nan(values):
    """Whether a number is unknown: C++ code makes a nan of the number that Tensor.item() returns."""
    return any(has_nan(value) if type(value) in (list, tuple) else isinstance(value, float) and value != value for value in values)


def contiguous(size):
    stride, step = [], 1
    for length in reversed(size):
        stride.append(step)
        step *= max(length, 1)
    return stride[::-1]


# Readers of values by the names that programs have for them.
READERS = {"_local_scalar_dense": "Tensor.item(), or bool(), int() or float() of a tensor,", "_unique2": "torch.unique", "unique_dim": "torch.unique",
           "nms": "torchvision.ops.nms"}
