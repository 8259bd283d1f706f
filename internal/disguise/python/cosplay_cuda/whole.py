"""Runs the CPU's code for what a GPU computes as one operation: with the mode off, and with a separate graph that autograd makes
of it. The numbers are the CPU's, and the memory is that of the GPU's operation."""
from . import errors, signals
from .storages import Tag


class Graph(Tag):
    """The tag of the memory that the operation keeps for its backward pass. Autograd releases it with its graph."""

    __slots__ = ("leaves", "outputs")
    holds = True


class Off:
    """A block without the mode. Signal handlers wait meanwhile, as during an operation."""

    __slots__ = ("guard", "hold")
    kind = None

    def __enter__(self):
        self.hold = hold = signals.of_thread()
        hold.count += 1
        self.guard = self.kind()

    def __exit__(self, *error):
        self.guard = None
        hold = self.hold
        hold.count -= 1
        if hold.postponed and not hold.count:
            hold.run()


def make(torch, devices, memory, order):
    """A function that runs a work on tensors."""
    Off.kind = torch._C._DisableTorchDispatch
    tag_of, put, storage_of = devices.tag_of, devices.tags.put, devices.tags.storage
    empty, enable_grad, is_grad_enabled = torch._VF.empty, torch.enable_grad, torch.is_grad_enabled

    def compute(work, tensors):
        try:
            return work.compute(tensors)
        except RuntimeError as error:
            wanted = errors.lacking(error)
            if wanted is None:
                raise
            memory.tag(work.index, wanted)
            raise errors.too_large(wanted)

    class CudnnRnn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, work, *tensors):
            tensors = tensors[:work.count]
            with Off(), enable_grad():
                leaves = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in tensors]
                outputs = compute(work, leaves)
                several = type(outputs) is tuple
                outputs = outputs if several else (outputs,)
                shown = tuple([tensor.detach() for tensor in outputs])
                buffer = empty(0)
            kept = work.book(shown)
            graph = Graph(work.index, kept.block, kept.release)
            kept.block, graph.leaves, graph.outputs = None, leaves, outputs
            put(storage_of(buffer), graph)
            ctx.save_for_backward(buffer, *(tensors if work.keeps_inputs else ()))
            ctx.set_materialize_grads(False)
            ctx.work = work
            return shown if several else shown[0]

        @staticmethod
        def backward(ctx, *given):
            buffer, *inputs = ctx.saved_tensors
            work, graph, needed = ctx.work, tag_of(buffer), ctx.needs_input_grad[1:]
            wanted = [at for at in range(work.count) if needed[at]]
            if is_grad_enabled():
                return (None, *work.again(inputs, given, wanted, len(needed), lambda: run(ctx, work, graph, wanted, needed, given)))
            return (None, *run(ctx, work, graph, wanted, needed, given))

    CudnnRnn._backward_cls.__name__ = "CudnnRnnBackward0"  # as a program sees it in grad_fn

    def run(ctx, work, graph, wanted, needed, given):
        """The gradients of all operands, those that are given several times included."""
        leaves, found = graph.leaves, work.gradients(graph.leaves, wanted)
        one_by_one, lists, handles = (), (), ()
        if found is None:
            if len(needed) > work.count:
                one_by_one = order.shared(ctx, [at for at in wanted if work.uses[at] > 1])
            with Off():
                if one_by_one:
                    lists, handles = order.parts(graph.outputs, [leaves[at] for at in one_by_one])
                pairs = [pair for pair in zip(graph.outputs, given) if pair[1] is not None]
                found = order.grad([output for output, _ in pairs], [leaves[at] for at in wanted], [gradient for _, gradient in pairs], True, False, True, True)
                for handle in handles:
                    handle.remove()
        result = [None] * len(needed)
        for at, gradient in zip(wanted, found):
            result[at] = gradient
        for at, parts in zip(one_by_one, lists):
            if parts:
                result[at] = parts[0]
        work.book_gradients(leaves, given, result)
        for at, parts in zip(one_by_one, lists):
            start = work.count + sum(work.uses[before] - 1 for before in range(at) if leaves[before].requires_grad)
            for number, part in enumerate(parts[1:]):
                put(storage_of(part), Tag(work.index))  # a part of the gradient that is booked
                result[start + number] = part
        return result

    return compute, CudnnRnn
