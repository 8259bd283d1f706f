"""Recurrent networks and their cells. A GPU runs a network as one operation of cuDNN, with one buffer for its backward pass. PyTorch's
CPU code makes many small operations of it, so it runs in one piece here (whole.py)."""
import functools

from . import errors, order, storages, whole
from .flops import format_of
from .sdpa import parts, up
from .storages import CPU, OPEN

SEQUENCES = (list, tuple)
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
CELLS = {"lstm_cell": "lstm", "gru_cell": "gru", "rnn_tanh_cell": "rnn_tanh", "rnn_relu_cell": "rnn_relu"}
# What cuDNN keeps of each step for the backward pass of a layer, in vectors of its hidden size, and of each network, in bytes; the parts begin
# at multiples of 16 bytes. Not published, but so on an H100 with cuDNN 9.19, and without other GPUs to compare (docs/developers/measured/h100-memory.md).
KEPT = {"lstm": 5, "gru": 6, "rnn_tanh": 1, "rnn_relu": 1}
HEAD, PART = 256, 16
RANDOM = 24  # bytes of each thread's generator for dropout
# The same of a cell, which CUDA computes by matrix products and a kernel of PyTorch: the gates from both products, and its workspace.
KEPT_BY_CELL = {"lstm": 12, "gru": 11, "rnn_tanh": 1, "rnn_relu": 1}
TRAINING_ONLY = "cudnn RNN backward can only be called in training mode"
TWICE = ("the derivative for '_cudnn_rnn_backward' is not implemented. Double backwards is not supported for CuDNN RNNs due to limitations in "
         "the CuDNN API. To run double backwards, please disable the CuDNN backend temporarily while running the forward pass of your RNN. For "
         "example: \nwith torch.backends.cudnn.flags(enabled=False):\n    output = model(inputs)")


class Call:
    """A call of a network or a cell: its arguments without their tensors, and its sizes."""

    def __init__(self, kind, original, args, cell, networks):
        self.kind, self.original, self.args, self.cell, self.networks = kind, original, list(args), cell, networks
        self.packed = not cell and type(args[3]) in SEQUENCES
        self.state = 2 if self.packed else 1  # the place of the states
        states = args[self.state]
        self.several = type(states) in SEQUENCES
        states = list(states) if self.several else [states]
        self.states = len(states)
        self.layers, self.directions, self.train, self.dropped, self.first = 1, 1, True, False, False
        if cell:
            weights = [weight for weight in args[2:] if weight is not None]
        else:
            weights = list(args[self.state + 1])
            self.layers, dropout, self.train, both = args[self.state + 3:self.state + 7]
            self.directions, self.dropped = 2 if both else 1, bool(dropout and self.train)
            self.first = not self.packed and args[8]
            self.args[self.state + 1] = None
        self.tensors = [args[0]] + states + weights  # until the call runs
        self.args[0] = self.args[self.state] = None
        self.count = len(self.tensors)
        self.keeps_inputs = cell  # for gradients of gradients

    def measure(self):
        """Reads the sizes. Reports whether they are those of a network; else PyTorch finds what is wrong."""
        x, weights = self.tensors[0], self.tensors[1 + self.states:]
        flat = self.packed or self.cell
        self.group, rest = divmod(len(weights), self.layers * self.directions)
        if rest or self.group not in ((2, 4) if self.cell else (2, 3, 4, 5)) or x.dim() != (2 if flat else 3) or not x.numel():
            return False
        if weights[0].dim() != 2 or weights[1].dim() != 2 or weights[0].size(1) != x.size(-1):
            return False
        self.hidden, self.out = weights[1].size(0) // GATES[self.kind], weights[1].size(1)
        self.steps = self.args[1].size(0) if self.packed else 1 if self.cell else x.size(1 if self.first else 0)
        self.rows = x.size(0) if flat else x.size(0) * x.size(1)
        self.batch = int(self.args[1][0]) if self.packed else self.rows // self.steps
        self.dtype, self.width = x.dtype, x.element_size()
        self.flops = 2 * self.rows * sum(weight.numel() for weight in weights if weight.dim() == 2)
        if self.cell:
            self.uses = [1, 2 if self.kind == "gru" else 1] + [1] * (self.count - 2)
        else:
            # The CPU multiplies the input of all steps by one matrix at once, and the states one by one.
            of_layer = ([1, self.steps, 1, self.steps] if self.group > 3 else [1, self.steps]) + [self.steps] * (self.group % 2)
            self.uses = [1 if self.first else self.directions] + [1] * self.states + of_layer * (self.layers * self.directions)
        transposed = x.transpose(0, 1) if self.first else x
        self.copied = 0 if self.cell or transposed.is_contiguous() else x.numel() * self.width
        # The sizes of the results, for compute = "shapes".
        width = self.out * self.directions
        self.sizes = [] if self.cell else [(x.size(0), width) if self.packed else (x.size(0), x.size(1), width)]
        self.sizes += [tuple(state.size()) for state in self.tensors[1:1 + self.states]]
        return True

    def kept(self):
        """The bytes of the buffer for the backward pass."""
        if self.cell:
            return self.rows * self.width * self.hidden * KEPT_BY_CELL[self.kind]
        if not self.train:
            return 0
        layer = self.hidden * KEPT[self.kind] + (self.hidden + self.out if self.out != self.hidden else 0)
        between = self.rows * self.directions * self.hidden
        size = HEAD + self.layers * self.directions * up(self.rows * layer * self.width, PART) + (self.layers - 1) * up(between * self.width, PART)
        if self.dropped:  # which numbers of the results between layers remain, a bit for each
            size += (self.layers - 1) * self.directions * up(parts(self.steps * self.batch * self.directions * self.out, 8), PART)
        return size

    def compute(self, tensors):
        if self.networks.shapes is not None:
            made = [self.networks.hollow(size, self.dtype) for size in self.sizes]
            if self.first:  # the result is laid out by steps
                made[0] = self.networks.hollow((self.sizes[0][1], self.sizes[0][0], self.sizes[0][2]), self.dtype).transpose(0, 1)
            made = tuple(made)
            return made if len(made) > 1 else made[0]
        return self.run(tensors)

    def run(self, tensors):
        """What PyTorch computes."""
        args, last = list(self.args), 1 + self.states
        args[0], args[self.state] = tensors[0], tensors[1:last] if self.several else tensors[1]
        if self.cell:
            weights = iter(tensors[last:])
            args[2:4] = next(weights), next(weights)
            args[4:] = [next(weights, None) for _ in args[4:]]
        else:
            args[self.state + 1] = tensors[last:]
        return self.original(*args)

    def book(self, results):
        """Books the results in the order in which a GPU allocates them. Returns the tag of the buffer for the backward pass."""
        memory = self.networks.memory
        copy = memory.workspace(self.index, self.copied)
        self.take_workspace()
        self.networks.devices.put(results, self.index)
        if self.dropped:
            self.networks.take_generators(self.index)
        kept = memory.tag(self.index, self.kept())
        del copy
        self.networks.counted(3 if self.cell else 1, self.flops, self.dtype)
        return kept

    def gradients(self, leaves, wanted):
        """Gradients without values, for compute = "shapes"; None if the CPU computes."""
        if not self.train:
            raise RuntimeError(TRAINING_ONLY)
        if self.networks.shapes is not None:
            return [self.networks.hollow(tuple(leaves[at].size()), self.dtype) for at in wanted]

    def book_gradients(self, leaves, given, result):
        """Books the gradients, and for the time of the operation what cuDNN allocates beside them."""
        memory, beside = self.networks.memory, [self.copied]
        if not self.cell:
            sizes = self.sizes
            beside += [self.bytes(size) for size, gradient in zip(sizes, given) if gradient is None or not gradient.is_contiguous()]
            beside += [self.bytes(leaf.size()) for leaf, gradient in zip(leaves[:1 + self.states], result) if gradient is None]
        else:
            self.take_workspace()
            beside.append(self.rows * self.hidden * GATES[self.kind] * self.width)
        tags = [memory.workspace(self.index, size) for size in beside]
        self.networks.devices.put(result, self.index)
        del tags
        self.networks.counted(1, 2 * self.flops, self.dtype)

    def take_workspace(self):
        """A cell has matrix products of cuBLAS, those of nn.RNNCell with a bias."""
        if self.cell:
            self.networks.products.take(self.index, self.kind not in ("lstm", "gru") and self.group == 4)

    def bytes(self, size):
        result = self.width
        for length in size:
            result *= length
        return result

    def again(self, inputs, given, wanted, count, once):
        """Gradients for create_graph: those of a cell have gradients, those of a network an error."""
        if not self.cell:
            return self.networks.Once.apply(self.networks.anchor(), *once())
        found = iter(self.networks.again(self, inputs, given, wanted))
        return [next(found) if at in wanted else None for at in range(count)]


class Networks:
    def __init__(self, torch, devices, memory, products, mode, shapes, threads):
        self.torch, self.devices, self.memory, self.products, self.mode, self.shapes = torch, devices, memory, products, mode, shapes
        self.threads, self.generators = threads, {}  # of each device
        self.kinds = (torch.Tensor, torch.nn.Parameter)
        self.depth, self.at = torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at
        self.functions, self.function_at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
        self.transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)
        self.autocasts = torch.is_autocast_cpu_enabled if errors.version(torch) < (2, 4) else lambda: torch.is_autocast_enabled("cpu")
        self.able = {(kind, dtype): True for kind in GATES for dtype in (torch.float32, torch.float64)}
        self.empty = torch._VF.empty
        self.order = order.Order(torch)
        self.alone, self.Function = whole.make(torch, devices, memory, self.order)
        self.Once = self.make_once()

    def take_generators(self, index):
        """Books the generators of cuDNN's dropout, which stay: one for each thread that the GPU holds."""
        if index not in self.generators:
            self.generators[index] = self.memory.workspace(index, self.threads() * RANDOM)

    def install(self):
        torch = self.torch
        for name in list(GATES) + list(CELLS):
            original = getattr(torch._VF, name)
            function = self.wrap(original, name)
            setattr(torch._VF, name, function)
            setattr(torch, name, function)
            self.devices.script(original, function, name)
        table = torch.nn.modules.rnn._rnn_impls
        for key in table:
            table[key] = getattr(torch, key.lower())

    def wrap(self, original, name):
        kind, cell = CELLS.get(name, name), name in CELLS

        @functools.wraps(original, assigned=("__name__", "__doc__", "__qualname__"), updated=())
        def run(*args, **kwargs):
            if kwargs or not plain(args) or self.watched():
                return original(*args, **kwargs)
            call = Call(kind, original, args, cell, self)
            tensors = call.tensors
            if not self.finds(call, tensors):
                return original(*args)
            call.tensors = None
            if not self.torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in tensors):
                with whole.Off():
                    results = self.alone(call, tensors)
                call.book(results)
                return results
            for tensor, count in zip(tuple(tensors), call.uses):
                if count > 1 and tensor.requires_grad:
                    tensors += [tensor] * (count - 1)  # a place for each gradient that is added up
            return self.Function.apply(call, *tensors)

        def plain(args):
            """Whether the arguments are those that PyTorch's modules give."""
            if cell:
                return len(args) in (4, 6)
            return len(args) == 9 and (type(args[2]) in SEQUENCES or type(args[3]) in SEQUENCES)

        run.__module__ = "torch"
        return run

    def watched(self):
        """Whether something else than this package sees each operation, or what it keeps for its gradient."""
        torch = self.torch
        return (self.depth() != 1 or not isinstance(self.at(0), self.mode) or self.order.local.hooks > 0 or self.autocasts() or self.transforms()
                or torch._C._get_tracing_state() is not None or torch.autograd.forward_ad._current_level >= 0
                or any(type(self.function_at(at)).__name__ != "DeviceContext" for at in range(self.functions())))

    def finds(self, call, tensors):
        """Whether the call runs in one piece: on one device, with sizes, types and settings with which cuDNN runs it."""
        kinds, tag_of = self.kinds, self.devices.tag_of
        places = []
        for tensor in tensors:
            if type(tensor) not in kinds:
                return False
            tag = tag_of(tensor)
            places.append(CPU if tag is None else tag.index)
        index = call.index = places[0]
        if max(places) < 0 or OPEN in places or not call.cell and not self.torch._C._get_cudnn_enabled():
            return False
        if call.packed and self.devices.of(call.args[1]) >= 0:
            return False
        if min(places) != max(places):
            if not call.cell and all(self.is_plain(tensor) for tensor in tensors) and (index >= 0 or not call.packed):
                at = next(at for at, place in enumerate(places) if place != index)
                raise errors.two_devices(self.torch, call.kind, "", False, [(index, "input"), (places[at], "hx" if at <= call.states else "weight")])
            return False
        if any(tensor.dtype is not tensors[0].dtype for tensor in tensors) or not call.measure() or not self.can(call.kind, tensors[0].dtype):
            return False
        if not call.cell:
            for at, tensor in enumerate(tensors[1:1 + call.states]):
                if not tensor.is_contiguous():
                    raise RuntimeError("rnn: %s is not contiguous" % ("cx" if at else "hx"))
        weights = tensors[1 + call.states:]
        return len(set(map(id, weights))) == len(weights)

    def is_plain(self, tensor):
        try:
            self.devices.tags.storage(tensor)
        except (RuntimeError, NotImplementedError, AttributeError):
            return False
        return not tensor.is_meta

    def can(self, kind, dtype):
        """Whether the CPU has all operations of a network for a dtype; the mode helps with those that it lacks."""
        known = self.able.get((kind, dtype))
        if known is None:
            def zeros(*size):
                return self.empty(size, dtype=dtype).zero_()

            function, gates = getattr(self.torch._C._VariableFunctions, kind), 2 * GATES[kind]
            try:
                with whole.Off(), self.torch.enable_grad():
                    weights = [zeros(*size).requires_grad_() for size in ((gates, 2), (gates, 2), (gates,), (gates,))]
                    states = [zeros(1, 1, 2), zeros(1, 1, 2)] if kind == "lstm" else zeros(1, 1, 2)
                    result = function(zeros(2, 1, 2), states, weights, True, 1, 0.0, True, False, False)[0]
                    self.order.grad([result], weights, [result.detach()])
                known = True
            except RuntimeError:
                known = False
            self.able[kind, dtype] = known
        return known

    def hollow(self, size, dtype):
        with whole.Off():
            return self.shapes.like(self.empty(size, dtype=dtype, device="meta"), 0)

    def counted(self, launches, flops, dtype):
        tally, counters = self.at(0).tally, self.devices.counters
        if counters.begun is not None:
            counters.begun()
        tally.product(format_of(self.torch, dtype, True), flops, flops)
        before, tally.launches = tally.launches, tally.launches + launches
        if before >> 6 != tally.launches >> 6:
            counters.progress()

    def anchor(self):
        with whole.Off():
            return self.empty(0).requires_grad_()

    def make_once(self):
        torch, devices = self.torch, self.devices

        class CudnnRnnBackward(torch.autograd.Function):
            """Gradients of a network that cannot be differentiated."""

            @staticmethod
            def forward(ctx, anchor, *gradients):
                with whole.Off():
                    return tuple([None if gradient is None else gradient.detach() for gradient in gradients])

            @staticmethod
            def backward(ctx, *given):
                raise NotImplementedError(TWICE)

        return CudnnRnnBackward

    def again(self, call, inputs, given, wanted):
        """The gradients of a cell, as operations that autograd sees."""
        views = [tensor.view_as(tensor) for tensor in inputs]
        results = call.run(views)
        results = results if type(results) is tuple else (results,)
        pairs = [pair for pair in zip(results, given) if pair[1] is not None]
        return self.order.grad([result for result, _ in pairs], [views[at] for at in wanted], [gradient for _, gradient in pairs], True, True, True, True)
