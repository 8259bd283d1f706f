"""What a CUDA graph records and runs again: the operations of a thread between the begin and the end of a capture.

The memory of a result is a separate object here: the program's storage is a second one over the same memory. So the
booking ends when the program drops its tensor, as in a capture on a GPU, and the graph still finds the memory."""
import contextlib
import ctypes
import weakref

from . import errors, halves, wide
from .storages import CPU, OPEN, Tag

# Operations that make memory and leave its content as it is.
ALLOCATE = frozenset(("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"))
# Operations that read a number of the host each time that they run. All others get it when they are recorded.
READ_HOST = frozenset(("copy_", "_to_copy"))
# Operations whose result CUDA waits for.
WAITING = frozenset(("_local_scalar_dense", "nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive", "equal", "bincount",
                     "is_nonzero", "nonzero_numpy"))
EACH = 64  # operations after which the memory of dropped results is returned


class Slot:
    """The memory of a storage that a graph uses. Memory that was made in a capture and that the program has dropped at its
    end is made again in each run."""

    __slots__ = ("storage", "memory", "made", "size", "kept", "__weakref__")

    def __init__(self, storage, size, made, memory=None):
        self.storage = storage  # returns the program's, or None if it has dropped it
        self.size, self.made, self.memory = size, made, memory
        self.kept = False  # the graph needs it between its runs


class Operand:
    """A tensor of an operation, as a part of a slot."""

    __slots__ = ("slot", "dtype", "layout", "conj", "neg", "tensor")

    def __init__(self, slot, tensor):
        self.slot, self.dtype = slot, tensor.dtype
        self.layout = tensor.storage_offset(), tuple(tensor.size()), tuple(tensor.stride())
        self.conj, self.neg, self.tensor = tensor.is_conj(), tensor.is_neg(), None


class Step:
    __slots__ = ("func", "args", "kwargs", "results", "drops")

    def __init__(self, func, args, kwargs, results):
        self.func, self.args, self.kwargs, self.results = func, args, kwargs, results
        self.drops = ()  # slots that no later step uses


def each(value, change, kind):
    """A value with each object of a kind in it, or in its lists, changed."""
    if isinstance(value, kind):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)([each(part, change, kind) for part in value])
    return value


def flat(value, kind):
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            for found in flat(part, kind):
                yield found


class Weak:
    """A weak reference to a storage. Its address is not used again as long as there is one."""

    __slots__ = ("kind", "pointer")

    def __init__(self, storage):
        self.kind, self.pointer = type(storage), storage._weak_ref()

    def __call__(self):
        return None if self.kind._expired(self.pointer) else self.kind._new_with_weak_ptr(self.pointer)

    def __del__(self):
        self.kind._free_weak_ref(self.pointer)


class OfObject:
    """A weak reference to the Python object of a storage, which lives as long as the storage."""

    __slots__ = ("reference",)

    def __init__(self, storage):
        self.reference = weakref.ref(storage)

    def __call__(self):
        storage = self.reference()
        if storage is not None:
            storage._fix_weakref()  # the storage may have had no reference from Python
        return storage


def finder(tags):
    """Functions that return the slot of a storage, and that make it."""
    if not tags.exact:
        known = weakref.WeakValueDictionary()

        def remember(storage, *how):
            slot = known[storage._cdata] = Slot(Weak(storage), storage.nbytes(), *how)
            return slot

        return lambda storage: known.get(storage._cdata), remember

    def find(storage):
        slot = getattr(storage, "_cosplay_slot", None)
        return slot and slot()

    def remember(storage, *how):
        slot = Slot(OfObject(storage), storage.nbytes(), *how)
        storage._cosplay_slot = weakref.ref(slot)
        return slot

    return find, remember


def make(torch, mode, tags, low, rules_of, computes):
    """The class of recordings. computes is False where nothing is computed, and only errors and memory matter."""
    from torch.utils._python_dispatch import TorchDispatchMode

    aten, Tensor = torch.ops.aten, torch.Tensor
    tag_of, storage_of, of_storage = mode.tag_of, tags.storage, tags.of_storage
    without_code = Tensor.__torch_dispatch__
    exchange = wide.make(torch)
    find, remember = finder(tags)
    rules = {}
    set_enabled, is_enabled = torch.set_autocast_cpu_enabled, torch.is_autocast_cpu_enabled
    if errors.version(torch) >= (2, 4):
        is_enabled, set_enabled = lambda: torch.is_autocast_enabled("cpu"), lambda on: torch.set_autocast_enabled("cpu", on)

    def normal():
        return torch._C._InferenceMode(False)

    @contextlib.contextmanager
    def below():
        """No mode, no gradients and no casts: what is recorded are the operations that these have led to."""
        before, guards = is_enabled(), [guard() for guard in (normal, torch._C._DisableTorchDispatch, torch._C._AutoDispatchBelowAutograd)]
        set_enabled(False)
        try:
            yield
        finally:
            set_enabled(before)
            while guards:
                guards.pop()

    def view(memory, dtype, layout):
        return aten.set_.source_Storage_storage_offset(aten.empty.memory_format([0], dtype=dtype, device="cpu"), memory, *layout)

    def bytes_of(memory):
        return view(memory, torch.uint8, (0, (memory.nbytes(),), (1,)))

    def tensor_of(operand):
        if operand.tensor is not None:
            return operand.tensor
        slot = operand.slot
        memory = slot.memory
        if memory is None:
            memory = slot.storage()
            if memory is None:  # a GPU uses the memory all the same
                memory = slot.memory = storage_of(aten.zeros.default([slot.size], dtype=torch.uint8, device="cpu"))
        tensor = view(memory, operand.dtype, operand.layout)
        if operand.conj:
            tensor = torch._conj(tensor)
        return torch._neg_view(tensor) if operand.neg else tensor

    def second(memory):
        """A second storage over the same memory, which keeps the first."""
        buffer = (ctypes.c_char * memory.nbytes()).from_address(memory.data_ptr())
        buffer.memory = memory
        return storage_of(torch.frombuffer(buffer, dtype=torch.uint8))

    class Rule:
        __slots__ = ("name", "written", "kept", "collective", "call", "as_gpu")

        def __init__(self, func):
            schema = func._schema
            space, self.name = schema.name.split("::")
            self.written = [(at, a.name) for at, a in enumerate(schema.arguments)
                            if a.alias_info is not None and a.alias_info.is_write or a.name in halves.RUNNING]
            self.kept = self.name in ALLOCATE
            self.collective = space == "c10d"
            self.call = rules_of.call(func)
            self.as_gpu = rules_of.as_gpu(self.call)

    class Recording(TorchDispatchMode):
        def __init__(self):
            TorchDispatchMode.__init__(self)
            self.steps, self.made, self.before = [], [], []  # slots of memory that the capture made, and of other memory
            self.saved = []  # memory that existed before the capture, with its content then
            self.generators = {id(torch.default_generator): (torch.default_generator, torch.default_generator.get_state())}
            self.failed = False  # an operation was not permitted
            self.operations = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if types and any(kind.__torch_dispatch__ != without_code and kind.__name__ != "FakeTensor" for kind in types):
                return NotImplemented
            rule = rules.get(func)
            if rule is None:
                rule = rules[func] = Rule(func)
            on_device = False
            for tensor in flat((args, tuple(kwargs.values())), Tensor):
                tag = tag_of(tensor)
                on_device = on_device or tag is not None and tag.index != CPU
            if on_device and self.waits(rule, args, kwargs):
                raise self.refused()
            if not computes:
                self.operations += on_device
                return rule.call(*args, **kwargs)
            for generator in flat((args, tuple(kwargs.values())), torch._C.Generator):
                self.generators.setdefault(id(generator), (generator, generator.get_state()))
            if on_device:
                self.save(rule, args, kwargs)
            names = {name for _, name in rule.written}
            wanted = [self.operands(arg, rule, at < len(func._schema.arguments) and func._schema.arguments[at].name in names)
                      for at, arg in enumerate(args)]
            named = {name: self.operands(arg, rule, name in names) for name, arg in kwargs.items()}
            result = rule.call(*args, **kwargs)
            fresh = {}
            found = [self.result(tensor, fresh, on_device) for tensor in flat(result, Tensor)]
            if not fresh and not (on_device and rule.written):
                return result
            self.steps.append(Step(func, wanted, named, [operand for operand, _ in found]))
            self.operations += 1
            if not self.operations % EACH:
                self.drop()
            if not fresh:
                return result
            tensors = iter([tensor for _, tensor in found])
            return each(result, lambda tensor: next(tensors), Tensor)

        def waits(self, rule, args, kwargs):
            if rule.name in WAITING:
                return True
            if rule.name in ("index", "index_put_", "_index_put_impl_"):  # a number in the place of a mask is no index
                return any(part is not None and part.dtype in (torch.bool, torch.uint8) for part in args[1]) and (
                    rule.name == "index" or args[2].numel() != 1)
            if rule.name == "copy_":
                sides = {(tag_of(part) or Tag(CPU)).index < 0 for part in args[:2]}
                return len(sides) > 1 and args[1].dim() > 0 and not (len(args) > 2 and args[2] or kwargs.get("non_blocking"))
            return rule.name == "repeat_interleave" and len(args) < 2 and kwargs.get("output_size") is None

        def refused(self):
            self.failed = True
            return errors.of_cuda(torch, "operation not permitted when stream is capturing", "cudaErrorStreamCaptureUnsupported")

        def slot_of(self, storage):
            """The slot of the program's storage."""
            slot = find(storage)
            if slot is None:
                slot = remember(storage, False)
                self.before.append(slot)
            return slot

        def operands(self, value, rule, written):
            return each(value, lambda tensor: self.operand(tensor, rule, written), Tensor)

        def operand(self, tensor, rule, written):
            tag = tag_of(tensor)
            if not written and rule.name not in READ_HOST and not tensor.dim() and (tag is None or tag.index == CPU):
                with below():
                    return tensor.clone()  # a GPU gets the number with the operation
            try:
                return Operand(self.slot_of(storage_of(tensor)), tensor)
            except (RuntimeError, NotImplementedError, AttributeError):
                return tensor  # of another kind than dense, which a graph keeps

        def save(self, rule, args, kwargs):
            """Keeps what an operation writes over: a capture computes nothing on a GPU."""
            for at, name in rule.written:
                for tensor in flat(args[at] if at < len(args) else kwargs.get(name), Tensor):
                    try:
                        slot = self.slot_of(storage_of(tensor))
                    except (RuntimeError, NotImplementedError, AttributeError):
                        continue
                    if slot not in self.made and all(known is not slot for known, _ in self.saved):
                        memory = slot.memory if slot.memory is not None else storage_of(tensor)
                        with below():
                            self.saved.append((slot, bytes_of(memory).clone()))

        def result(self, tensor, fresh, on_device):
            """The operand of a result in new memory, and the tensor that the program gets."""
            try:
                memory = storage_of(tensor)
                tag = of_storage(memory)
            except (RuntimeError, NotImplementedError, AttributeError):
                return None, tensor
            key = memory._cdata
            if key in fresh:
                slot, other = fresh[key]
            elif find(memory) is not None or not on_device and (tag is None or tag.index == CPU):
                return None, tensor
            else:
                slot, other = fresh[key] = self.new(tensor, memory, tag)
            if other is not None:
                with below():
                    tensor = view(other, tensor.dtype, (tensor.storage_offset(), tensor.size(), tensor.stride()))
            return Operand(slot, tensor), tensor

        def new(self, tensor, memory, tag):
            """The slot of memory that an operation has made, and the program's storage over it."""
            other = None
            if memory.nbytes() and tag is not None and tag.index != CPU and not tensor.is_quantized:
                with below():
                    other = second(memory)
                tags.put(other, tag)
                tags.put(memory, Tag(tag.index))
            slot = remember(memory, True) if other is None else remember(other, True, memory)
            self.made.append(slot)
            return slot, other

        def drop(self):
            for slot in self.made:
                if slot.memory is not None and slot.storage() is None:
                    slot.memory = None

        def finish(self):
            """Ends the capture: nothing has been computed, and the memory that the program still has is kept."""
            with below():
                for slot, content in self.saved:
                    memory = slot.memory if slot.memory is not None else slot.storage()
                    if memory is not None:
                        bytes_of(memory)[:content.numel()].copy_(content)
                for generator, state in self.generators.values():
                    generator.set_state(state)
                for slot in self.made:
                    storage = slot.storage()
                    slot.kept = storage is not None
                    slot.memory = None if storage is None else storage if slot.memory is None else slot.memory
                self.prepare()
            self.before, self.saved, self.generators = [], [], {}

        def prepare(self):
            """Makes the tensors of memory that is kept, and finds where the other memory is used last."""
            self.steps = [step for step in self.steps if not (rules[step.func].kept and all(part is None or part.slot.kept for part in step.results))]
            seen = set()
            for step in reversed(self.steps):
                drops = []
                for operand in flat((step.args, list(step.kwargs.values()), step.results), Operand):
                    slot = operand.slot
                    if slot.kept:
                        operand.tensor = tensor_of(operand)
                    elif slot.made and slot not in seen:
                        seen.add(slot)
                        drops.append(slot)
                step.drops = drops

        def replay(self):
            with below():
                for step in self.steps:
                    args = [each(arg, tensor_of, Operand) for arg in step.args]
                    result = compute(step.func, args, {name: each(arg, tensor_of, Operand) for name, arg in step.kwargs.items()})
                    for tensor, operand in zip(flat(result, Tensor), step.results):
                        if operand is not None and operand.slot.kept:
                            operand.tensor.copy_(tensor)
                        elif operand is not None:
                            operand.slot.memory = storage_of(tensor)
                    for slot in step.drops:
                        slot.memory = None

    def compute(func, args, kwargs):
        rule = rules[func]
        if rule.collective:
            result = exchange(func, *args, **kwargs)
            work = result[-1] if isinstance(result, (list, tuple)) else result
            if hasattr(work, "wait"):
                work.wait()
            return result
        try:
            return rule.as_gpu(args, kwargs) if rule.as_gpu else rule.call(*args, **kwargs)
        except RuntimeError as error:
            return low.missing(func, args, kwargs, error, True)

    # As of the mode that books memory: newer versions wrap the method for torch.compile.
    Recording.__torch_dispatch__ = getattr(Recording.__torch_dispatch__, "__wrapped__", Recording.__torch_dispatch__)
    return Recording
