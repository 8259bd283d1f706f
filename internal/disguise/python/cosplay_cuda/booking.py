"""Sees every operation that PyTorch runs: finds the device it runs on, refuses operands of two devices, and books the
memory of its results."""
import collections
import functools
import sys
import threading
import weakref

from . import counting, errors, signals, storages, wide
from .storages import CPU, OPEN, UNSET, Tag

SEQUENCES = (list, tuple)

# Operations whose operands may be on several devices, because CUDA's copy them or read them on the host.
MIXING = frozenset((
    "copy_", "_to_copy", "_copy_from", "_copy_from_and_resize", "copy", "set_", "index", "index_put", "index_put_", "_index_put_impl_",
    "_unsafe_index", "_unsafe_index_put", "record_stream", "_pack_padded_sequence", "_pad_packed_sequence", "_pack_padded_sequence_backward",
    "repeat_interleave", "tensor_split", "_local_scalar_dense", "resize_as_", "_foreach_copy_", "is_set_to", "detach", "lift_fresh",
    "_thnn_fused_lstm_cell", "_has_same_storage_numel", "_ctc_loss", "_ctc_loss_backward", "ctc_loss", "_use_cudnn_ctc_loss", "slow_conv_forward",
))

# Of these PyTorch states no argument: their operands are checked by what all element-wise operations share.
PLAIN_CHECK = frozenset(("add", "sub", "mul", "div", "pow", "where", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum"))

# CUDA's element-wise operations take a number of the CPU, a tensor without dimensions, with tensors of a device. These do not.
ONE_DEVICE = frozenset((
    "stack", "cat", "hstack", "vstack", "dstack", "embedding", "embedding_renorm", "_embedding_bag", "_embedding_bag_forward_only", "index_select",
    "index_add", "index_copy", "index_reduce", "gather", "scatter", "scatter_add", "scatter_reduce", "take", "put", "nll_loss_forward", "equal",
    "masked_select", "masked_scatter", "searchsorted", "bucketize", "isin", "addmm", "addmv", "addr", "addbmm", "baddbmm", "kthvalue",
))


# Operations that can give a tensor more memory. Those with an argument "out" can, too.
RESIZING = frozenset(("resize_", "resize_as_"))

# Autograd's formulas write into zeros that they have made, by these. While any mode is on, they use the ones that return another tensor; its
# memory is that of the zeros.
ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
ONTO_ZEROS = frozenset(("scatter", "scatter_add", "index_add", "index_put", "_unsafe_index_put", "index_copy", "masked_scatter", "put"))

NUMBER = "Expected a value of type 'Tensor' for argument"


class Local(threading.local):
    target = UNSET  # the device that a call names, while it runs
    ambient = UNSET  # the device of PyTorch's own memory, while a backward pass runs
    zeros = None  # a reference to the tag of zeros that a backward pass has made
    counted = False  # the bytes of the copy that runs are in the report
    mode = None  # that of the thread


# Functions that return, for an operation, a function or None: one that refuses its arguments as CUDA does, one that counts it, one
# that runs it on tensors of a device where the CPU's result differs, and one that books what it takes beside its results. call
# returns what runs it.
Rules = collections.namedtuple("Rules", "check count as_gpu beside call")


class Plan:
    """What is known about an operation from its schema."""

    __slots__ = ("func", "call", "run", "fresh", "named", "mixing", "foreach", "first", "view", "resizes", "name", "overload", "arguments", "random", "check",
                 "writes", "count", "written", "strict", "as_gpu", "beside", "zeros")

    def __init__(self, func, rules):
        schema = func._schema
        self.func = func  # its address is the key of this plan, so it must live as long
        self.call = self.run = rules.call(func)
        namespace, self.name = schema.name.split("::")
        self.check, self.as_gpu, self.beside = rules.check(func), rules.as_gpu(self.call), rules.beside(func)
        self.overload = func._overloadname
        self.zeros = True if self.name in ZEROS else False if self.name in ONTO_ZEROS else None  # whether it makes zeros, or writes on them
        returned = [r for r in schema.returns if "Tensor" in str(r.type)]
        self.fresh = any(r.alias_info is None for r in returned)
        self.arguments = [a.name for a in schema.arguments]
        self.named = "device" in self.arguments
        self.random = "generator" in self.arguments
        self.mixing = self.name in MIXING or namespace in ("c10d", "_c10d_functional", "profiler")
        self.foreach = self.name.startswith("_foreach_")
        self.resizes = self.name in RESIZING or any(getattr(a, "is_out", False) for a in schema.arguments)
        self.first = self.name == "_pack_padded_sequence"  # whose batch sizes stay on the host
        self.writes, self.count = counting.writes(schema, self.name), rules.count(func)
        self.written = [a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write]
        # Whether an operand needs a look also if it is a number on the CPU. Most write none or only their first.
        self.strict = self.name.rstrip("_") in ONE_DEVICE or self.written not in ([], self.arguments[:1])
        operands = [a for a in schema.arguments if "Tensor" in str(a.type)]
        # Nothing is checked and nothing is booked for a view of one tensor.
        self.view = (not self.fresh and not self.named and len(operands) == 1 and "List" not in str(operands[0].type)
                     and not (operands[0].alias_info and operands[0].alias_info.is_write))


def make(torch, tags, memory, counters, rules, low, shapes=None):
    """The mode, to be entered in every thread. memory has the allocators of the devices. shapes infers results in place of
    computing them, if it is given."""
    from torch.utils._python_dispatch import TorchDispatchMode

    tag_of = tags.reader()
    without_code = torch.Tensor.__torch_dispatch__
    Tensor = torch.Tensor
    local = memory.activity.targets
    exchange = wide.make(torch)
    plans = {}
    storage_of = tags.storage
    put, of_storage = tags.put, tags.of_storage

    def book(tensor, index):
        """Puts the storage of a new tensor on a device."""
        try:
            storage = storage_of(tensor)
        except (RuntimeError, NotImplementedError, AttributeError):
            for part in parts_of(tensor):
                book(part, index)
            if tensor._is_zerotensor():  # of which PyTorch states no storage, and which needs no memory
                tensor._cosplay_tag = Tag(index)
            return
        tag = of_storage(storage)
        if tag is None:
            if not tensor.is_meta and (type(tensor) is Tensor or not hasattr(tensor, "fake_device")):
                put(storage, memory.tag(index, storage.nbytes()))
        elif tag.index == OPEN:
            adopt(tag, storage, index)

    def book_zeros(plan, args, result, index):
        """Books zeros of a backward pass, and what is written on them."""
        backward = local.ambient != UNSET
        written = local.zeros() if backward and not plan.zeros and local.zeros is not None else None
        if written is not None and tag_of(args[0]) is written:
            put(storage_of(result), written)
            written.hollow = True  # until it is known that it has values
            local.zeros = None
        book(result, index)
        if backward and plan.zeros:
            local.zeros = weakref.ref(tag_of(result))

    def open_all(result, opened):
        """Marks what an operation made of sizes alone."""
        for tensor in operands((result,), None):
            try:
                storage = storage_of(tensor)
            except (RuntimeError, NotImplementedError, AttributeError):
                continue
            if of_storage(storage) is None:
                tag = Tag(OPEN)
                put(storage, tag)
                opened.append(weakref.ref(tag))  # its memory is released with its storage

    def adopt(tag, storage, index):
        new = memory.tag(index, storage.nbytes())
        tag.index, tag.block, tag.release, new.block = index, new.block, new.release, None

    def book_again(tensor):
        """Books the memory of a tensor that an operation has resized."""
        tag = tag_of(tensor)
        if tag is None or tag.index < 0:
            return
        size, block = storage_of(tensor).nbytes(), tag.block
        if size != (block.requested if block else 0):
            adopt(tag, storage_of(tensor), tag.index)
            if block:
                memory.of(tag.index).release(block)

    def parts_of(tensor):
        if storages.is_wrapped(tensor):
            return (storages.transforms.get_unwrapped(tensor),)
        if tensor.layout is torch.sparse_coo:
            return tensor._indices(), tensor._values()
        if tensor.layout in (getattr(torch, "sparse_csr", None), getattr(torch, "sparse_bsr", None)):
            return tensor.crow_indices(), tensor.col_indices(), tensor.values()
        if tensor.layout in (getattr(torch, "sparse_csc", None), getattr(torch, "sparse_bsc", None)):
            return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
        if tensor.layout is torch._mkldnn:
            raise errors.unsupported("An MKL-DNN tensor on a CUDA device")
        return ()

    def book_all(result, index):
        if isinstance(result, Tensor):
            book(result, index)
        elif isinstance(result, (list, tuple)):
            for part in result:
                if part is not None:
                    book_all(part, index)

    def operands(args, kwargs):
        for group in (args, kwargs.values() if kwargs else ()):
            for arg in group:
                if isinstance(arg, Tensor):
                    yield arg
                elif type(arg) is list or type(arg) is tuple:
                    for part in arg:
                        if isinstance(part, Tensor):
                            yield part

    def refuse(plan, args, kwargs):
        """Raises the error of operands on several devices; returns if they are allowed together."""
        if plan.foreach and args and type(args[0]) in SEQUENCES:
            # CUDA runs the operation on each place of its lists, which can be on different devices.
            for number in range(len(args[0])):
                refuse_in(plan, [arg[number:number + 1] if type(arg) in SEQUENCES else arg for arg in args], kwargs)
        else:
            refuse_in(plan, args, kwargs)

    def refuse_in(plan, args, kwargs):
        found, seen = [], set()
        names = dict(zip(plan.arguments, args))
        names.update(kwargs or {})
        for name, arg in names.items():
            for tensor in operands((arg,), None):
                tag = tag_of(tensor)
                index = CPU if tag is None else tag.index
                if index == OPEN or tensor.is_meta:
                    continue
                if index == CPU and tensor.dim() == 0 and name not in plan.written and plan.name.rstrip("_") not in ONE_DEVICE:
                    continue
                if index not in seen:
                    seen.add(index)
                    found.append((index, name))
        if len(found) > 1:
            if plan.name == "convolution":
                raise errors.convolution(names["input"], names["weight"], names.get("bias"))
            plain = plan.name.rstrip("_") in PLAIN_CHECK
            if plain:
                found.sort(key=lambda f: f[0] == CPU)  # the element-wise check starts from a GPU
            raise errors.two_devices(torch, plan.name, plan.overload, plain, found)

    def refuse_size(index, wanted):
        """Raises the error of memory that this machine has not: CUDA's, if the device has not either."""
        if index >= 0:
            memory.tag(index, wanted)
            raise errors.too_large(wanted)

    def adopt_operands(args, kwargs, index):
        for tensor in operands(args, kwargs):
            tag = tag_of(tensor)
            if tag is not None and tag.index == OPEN:
                adopt(tag, storage_of(tensor), index)

    def with_tensors(func, args):
        """The operands, with tensors in place of numbers. In traced code a size is a tensor, which reaches a mode as its number."""
        dtypes = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
        return [torch.scalar_tensor(arg, dtype=dtypes[type(arg)]) if type(arg) in dtypes and "Tensor" in str(wanted.type) else arg
                for arg, wanted in zip(args, func._schema.arguments)]

    def caller():
        """Where the program, or PyTorch's Python code, is in its call of the operation."""
        frame = sys._getframe(2)
        while frame.f_code.co_name == "__torch_dispatch__":  # a mode of PyTorch, or of the program
            frame = frame.f_back
        return frame

    class Booking(TorchDispatchMode):
        def __init__(self):
            TorchDispatchMode.__init__(self)
            self.tally, self.hold = counters.join(), signals.of_thread()
            self.opened, self.opener = [], None  # what the current call of the program has made for itself, and that call
            self.special = None  # books the results of a composite operation that CUDA has a kernel for, while it runs
            local.mode = self

        def close(self, frame):
            """Memory that a function of PyTorch made for itself is the host's if the function has returned."""
            if frame is None or not self.within(frame):
                for tag in (known() for known in self.opened):
                    if tag is not None and tag.index == OPEN:
                        tag.index = CPU
                del self.opened[:]

        def within(self, frame):
            """Whether the function runs that the opener has called. A mode of the program may run operations meanwhile."""
            while frame is not None and (id(frame), frame.f_lasti) != self.opener:
                frame = frame.f_back
            return frame is not None

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            hold = self.hold
            hold.count += 1
            try:
                return dispatch(self, func, types, args, kwargs)
            finally:
                hold.count -= 1
                if hold.postponed and not hold.count:
                    hold.run()

        def dispatch(self, func, types, args, kwargs):
            if types and any(kind.__torch_dispatch__ != without_code and kind.__name__ != "FakeTensor" for kind in types):
                return NotImplemented  # a subclass runs operations on plain tensors; the code of fake ones is in their mode
            key = id(func)
            plan = plans.get(key)
            if plan is None:
                plan = plans[key] = Plan(func, rules)
                plan.view = plan.view and shapes is None and plan.check is None and plan.count is None
                if func._schema.name.startswith("c10d::"):
                    plan.run = functools.partial(exchange, func)
            if self.opened:
                self.close(caller())
            index, mixed, opened = CPU, False, False
            host = False  # an operand on the CPU that is not a number
            given = args + tuple(kwargs.values()) if kwargs else args
            for arg in () if plan.view else given:
                for tensor in arg if type(arg) in SEQUENCES else (arg,):
                    if not isinstance(tensor, Tensor):
                        continue
                    tag = tag_of(tensor)
                    at = CPU if tag is None else tag.index
                    if at >= 0:
                        if index < 0:
                            index = at
                        elif index != at:
                            mixed = True
                    elif at == OPEN:
                        opened = True
                    elif not host:
                        host = tensor.dim() > 0 or plan.strict or plan.written and tensor is args[0]
            if opened and host and index < 0:
                self.close(None)
            if index >= 0:
                if (host or mixed) and not plan.mixing:
                    refuse(plan, args, kwargs)
                if opened:
                    adopt_operands(args, kwargs, index)
                if plan.check is not None:
                    plan.check(args)
            if plan.random and args_have_tensor(args):
                for arg in tuple(args) + tuple(kwargs.values() if kwargs else ()):
                    if isinstance(arg, torch._C.Generator):
                        check_generator(arg, index)
            if plan.named:
                if local.target != UNSET:
                    index = local.target
                elif index < 0 and not host and not args_have_tensor(args):
                    frame = caller()
                    # Python code that runs in a backward pass makes its tensors where it says.
                    index = local.ambient if local.ambient >= 0 and frame.f_globals.get("__name__", "").startswith("torch.") else OPEN
                    self.opener = id(frame), frame.f_lasti
            known = False  # compute = "shapes": the result has values
            if shapes is not None:
                result, known = shapes.run(plan.call, args, kwargs or {}, index)
            else:
                try:
                    if plan.as_gpu is not None and index >= 0:
                        result = plan.as_gpu(args, kwargs or {})
                    else:
                        result = plan.run(*args, **kwargs) if kwargs else plan.run(*args)
                except RuntimeError as error:
                    wanted = errors.lacking(error)
                    if wanted is not None:
                        refuse_size(index, wanted)
                    if NUMBER in str(error):
                        result = func(*with_tensors(func, args), **(kwargs or {}))
                    else:
                        result = low.missing(plan.call, args, kwargs or {}, error, index >= 0)
            if plan.count is not None:
                plan.count(self.tally, index, args, kwargs, result)
            if plan.resizes:
                for tensor in operands((result,), None):
                    book_again(tensor)
            if plan.fresh:
                if index < 0 and opened and not host and (not plan.named or local.target == UNSET):
                    index = OPEN
                if index == OPEN:
                    open_all(result, self.opened)
                elif index >= 0:
                    if self.special is not None:
                        self.special(plan, result, index)
                    elif isinstance(result, Tensor):
                        if plan.zeros is None:
                            book(result, index)
                        else:
                            book_zeros(plan, args, result, index)
                    elif plan.foreach and (mixed or host):
                        for part, operand in zip(result, args[0]):
                            tag = tag_of(operand)
                            if tag is not None and tag.index >= 0:
                                book_all(part, tag.index)
                    else:
                        book_all(result[:1] if plan.first else result, index)
                    if known:
                        shapes.keep(result)
            if index >= 0 and plan.writes:
                if not plan.fresh and isinstance(result, Tensor) and result.layout is not torch.strided:
                    book(result, index)  # zero_ and others give a sparse tensor new parts
                if plan.beside is not None and self.special is None:
                    plan.beside(index, args, kwargs, result)
                tally = self.tally
                tally.launches += 1
                if not tally.launches & 63:
                    counters.progress()
            return result

    dispatch = Booking.dispatch
    generators = {}  # "cpu" or "cuda" of each one that the program made, by its address

    def check_generator(generator, index):
        of, wanted = generators.get(generator._cdata), "cuda" if index >= 0 else "cpu"
        if of is not None and of != wanted:
            raise RuntimeError("Expected a '%s' device type for generator but found '%s'" % (wanted, of))

    def args_have_tensor(args):
        for _ in operands(args, None):
            return True
        return False

    Booking.generators, Booking.check_generator = generators, staticmethod(check_generator)
    # Newer versions wrap the method so that torch.compile skips it, and look for its replacements by extensions; each costs
    # a microsecond of every operation, and there is no compiler and no such replacement here.
    Booking.__torch_dispatch__ = getattr(Booking.__torch_dispatch__, "__wrapped__", Booking.__torch_dispatch__)
    without_rules(Booking)
    Booking.local, Booking.book, Booking.tag_of = local, staticmethod(book_all), staticmethod(tag_of)
    Booking.keep = staticmethod(shapes.keep if shapes is not None else lambda result: None)
    return Booking


def without_rules(mode):
    try:
        from torch._library import simple_registry
    except ImportError:
        return
    find = getattr(simple_registry, "find_torch_dispatch_rule", None)
    if find is not None:
        simple_registry.find_torch_dispatch_rule = lambda operation, kind: None if kind is mode else find(operation, kind)
