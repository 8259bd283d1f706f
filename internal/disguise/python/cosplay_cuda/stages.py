"""Tells the record of a device's memory what the program does, and which blocks are its parameters: from PyTorch's modules, optimizers and
backward passes, and from the ranges that programs name for profilers."""
import functools
import sys

from .origins import OPTIMIZER, PARAMETERS, Activity

NAME = 40  # characters of the name of a range


class Labels:
    """Says of the memory of tensors what it is for."""

    def __init__(self, torch, tag_of):
        self.Tensor, self.tag_of = torch.Tensor, tag_of

    def put(self, tensors, kind):
        for tensor in tensors:
            if isinstance(tensor, self.Tensor):
                tag = self.tag_of(tensor)
                if tag is not None and tag.block is not None:
                    tag.block.kind = kind


def install(torch, devices, memory, counters):
    activity, labels = memory.activity, Labels(torch, devices.tag_of)

    def begun():
        counters.begun = None
        counters.compute()
        if activity.stage == Activity.LOAD:
            activity.turn(Activity.FORWARD)

    counters.begun = begun
    modules(torch, labels)
    optimizers(torch, labels, activity, counters)
    ranges(torch, activity)


def modules(torch, labels):
    Module, Parameter = torch.nn.Module, torch.nn.Parameter
    new, apply, register = Parameter.__new__, Module._apply, Module.register_buffer

    @functools.wraps(new)
    def __new__(cls, *args, **kwargs):
        parameter = new(cls, *args, **kwargs)
        labels.put((parameter,), PARAMETERS)
        return parameter

    @functools.wraps(apply)
    def _apply(self, *args, **kwargs):
        result = apply(self, *args, **kwargs)
        labels.put(self._parameters.values(), PARAMETERS)
        labels.put(self._buffers.values(), PARAMETERS)
        return result

    @functools.wraps(register)
    def register_buffer(self, name, tensor, *args, **kwargs):
        labels.put((tensor,), PARAMETERS)
        return register(self, name, tensor, *args, **kwargs)

    Parameter.__new__, Module._apply, Module.register_buffer = staticmethod(__new__), _apply, register_buffer


def optimizers(torch, labels, activity, counters):
    Optimizer = torch.optim.Optimizer
    init, load = Optimizer.__init__, Optimizer.load_state_dict

    def label(self):
        for group in self.param_groups:
            labels.put(group["params"], PARAMETERS)
        for state in self.state.values():
            if isinstance(state, dict):
                labels.put(state.values(), OPTIMIZER)

    def staged(step):
        @functools.wraps(step)
        def run(self, *args, **kwargs):
            if activity.stage == Activity.STEP:  # within an optimizer that calls another one
                return step(self, *args, **kwargs)
            before = activity.turn(Activity.STEP)
            try:
                return step(self, *args, **kwargs)
            finally:
                activity.turn(before)
                counters.stepped()

        run.cosplay_staged = True
        return run

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        init(self, *args, **kwargs)
        kind = type(self)
        if not getattr(kind.step, "cosplay_staged", False):
            kind.step = staged(kind.step)
        label(self)

    @functools.wraps(load)
    def load_state_dict(self, *args, **kwargs):
        result = load(self, *args, **kwargs)
        label(self)
        return result

    Optimizer.__init__, Optimizer.load_state_dict = __init__, load_state_dict


def ranges(torch, activity):
    """torch.cuda.nvtx, and record_function where the program calls it itself."""
    nvtx, record = torch.cuda.nvtx._nvtx, torch.autograd.profiler.record_function
    push, pop, enter, leave = nvtx.rangePushA, nvtx.rangePop, record.__enter__, record.__exit__

    def rangePushA(text):
        activity.begin(str(text)[:NAME])
        return push(text)

    def rangePop():
        activity.end()
        return pop()

    @functools.wraps(enter)
    def __enter__(self):
        self.cosplay_named = not sys._getframe(1).f_globals.get("__name__", "").startswith("torch.")
        if self.cosplay_named:
            activity.begin(str(self.name)[:NAME])
        return enter(self)

    @functools.wraps(leave)
    def __exit__(self, *error):
        if getattr(self, "cosplay_named", False):
            activity.end()
        return leave(self, *error)

    nvtx.rangePushA, nvtx.rangePop, record.__enter__, record.__exit__ = rangePushA, rangePop, __enter__, __exit__
