"""Runs the operators of PyTorch's own list, OpInfo, on a device of a session: with gradients, without them, under inference_mode, in another
thread, under a mode of the program, with hooks of saved tensors, and within torch.func. Each result must be on the device, and what the
allocator has booked must be the memory of the results. With arguments, only every N-th operator from the first one, and FIRST, run:

    operators.py [N [FIRST]]"""
import contextlib
import gc
import itertools
import sys
import threading
import types
import unittest
import warnings

SAMPLES = 3  # inputs of each operator and type
TYPES = ("float32", "float16", "complex64", "int64", "bool")
# Their results are on the host on GPUs, too.
ON_HOST = {"histogramdd", "to_sparse"}

try:
    import expecttest  # noqa: F401 PyTorch's list imports it, and nothing here uses it
except ImportError:
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase, sys.modules["expecttest"].ACCEPT = unittest.TestCase, False

import torch  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

warnings.simplefilter("ignore")
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402


class Through(TorchDispatchMode):
    """A mode of a program, which changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def in_thread(call):
    found = []

    def run():
        try:
            with torch.no_grad():
                found.append(call())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def within(*contexts):
    def run(call):
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            return call()

    return run


def hooks():
    return torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)


def derived(call):
    """Within torch.func, whose tensors wrap those of the program."""
    transforms = getattr(torch, "func", None) or __import__("functorch")
    try:
        return transforms.vjp(lambda number: call(), torch.ones((), device="cuda"))[0]
    except Exception as error:
        if "device" in str(error):
            raise
        return ()  # it returns more than tensors, or needs a value


WAYS = {
    "with gradients": lambda call: call(), "no_grad": within(torch.no_grad), "inference_mode": within(torch.inference_mode),
    "a mode": within(torch.no_grad, Through), "a mode in inference_mode": within(torch.inference_mode, Through), "hooks": within(hooks), "a thread": in_thread,
    "torch.func": derived,
}
# These keep nothing for a backward pass, so their results are all that stays.
EXACT = ("no_grad", "inference_mode", "a mode", "a mode in inference_mode", "a thread")


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def storages(value):
    """The bytes of each storage, by its address; None if one has no storage."""
    found = {}
    for tensor in tensors(value):
        if tensor.layout is not torch.strided or tensor.is_nested:
            return None
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()
        found[storage._cdata if storage.nbytes() else 0] = storage.nbytes()
    return found


def booked(sizes):
    return sum(-(-size // 512) * 512 for size in sizes)


class Check:
    def __init__(self):
        self.calls, self.operators, self.faults, self.refused = 0, 0, [], {}

    def operator(self, op):
        names = [name for name in TYPES if getattr(torch, name) in op.supported_dtypes("cuda")]
        tried = False
        for name in names[:3]:
            try:
                samples = list(itertools.islice(op.sample_inputs("cuda", getattr(torch, name)), SAMPLES))
            except Exception as error:
                self.refused.setdefault(full(op), "samples: %s" % first_line(error))
                continue
            for sample in samples:
                tried = self.sample(op, name, sample) or tried
        self.operators += tried

    def sample(self, op, dtype, sample):
        peaks = {}
        for way, run in WAYS.items():
            def call():
                return op(sample.input, *sample.args, **sample.kwargs)

            fault = self.fault(op, (sample.input, sample.args, sample.kwargs), run, call, way, peaks)
            if fault is None:
                continue
            if isinstance(fault, Exception):
                if way == "with gradients":
                    self.refused.setdefault(full(op), first_line(fault))
                    return False
                fault = "raises " + first_line(fault)
            self.faults.append("%s, %s, %s: %s" % (full(op), dtype, way, fault))
        if peaks.get("no_grad") != peaks.get("inference_mode"):
            self.faults.append("%s, %s: a peak of %s bytes under no_grad, and of %s under inference_mode" % (
                full(op), dtype, peaks.get("no_grad"), peaks.get("inference_mode")))
        return True

    def fault(self, op, given, run, call, way, peaks):
        inputs = storages(given)
        torch.manual_seed(1)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        try:
            result = run(call)
        except Exception as error:
            return error
        self.calls += 1
        after, peaks[way] = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated() - before
        wrong = [str(tensor.device) for tensor in tensors(result) if tensor.device.type != "cuda"]
        if wrong and op.name not in ON_HOST:
            return "a result is on %s" % wrong[0]
        made = storages(result)
        if inputs is None or made is None:
            return None
        wanted = booked(size for address, size in made.items() if address not in inputs)
        if after - before < wanted or way in EXACT and after - before > wanted:
            return "its results have %d bytes, and %d are booked" % (wanted, after - before)
        return None


def full(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def first_line(error):
    return "%s: %s" % (type(error).__name__, (str(error).splitlines() or [""])[0][:120])


def main(step=1, first=0):
    check = Check()
    a = torch.ones(4, 4, device="cuda")
    for way, run in WAYS.items():
        run(lambda: (a @ a, torch.nn.functional.linear(a, a, a[0])))  # what the first product of a thread takes stays
    del run
    gc.disable()
    for number, op in enumerate(op_db[int(first)::int(step)]):
        check.operator(op)
        if number % 50 == 0:
            gc.collect()
    for name, why in sorted(check.refused.items()):
        print("  not run: %s: %s" % (name, why))
    for fault in check.faults:
        print("  " + fault)
    print("PyTorch %s: %d of %d operators, %d calls, %d faults" % (torch.__version__, check.operators, len(op_db[int(first)::int(step)]), check.calls, len(check.faults)))
    return check.faults != []


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
