"""The workspaces of cuBLAS by version of PyTorch, capability, thread and stream, without PyTorch."""
import os
import sys
import threading
import types

sys.dont_write_bytecode = True
sys.path.insert(0, "python")
from cosplay_cuda import workspaces

KIB, MIB = 1 << 10, 1 << 20


class Tag:
    def __init__(self, account, size):
        self.account, self.block = account, types.SimpleNamespace(requested=size)
        account.now += size
        account.peak = max(account.peak, account.now)

    def __del__(self):
        self.account.now -= self.block.requested


class Account:
    now = peak = current = 0

    def tag(self, index, size):
        return Tag(self, size)

    workspace = tag

    def stream(self, index):
        return self.current


def make(version, capability=(8, 6), **variables):
    for name in ("CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "TORCH_CUBLASLT_UNIFIED_WORKSPACE"):
        os.environ.pop(name, None)
    os.environ.update(variables)
    torch = types.SimpleNamespace(__version__=version, _C=types.SimpleNamespace(_current_graph_task_id=lambda: torch.task))
    torch.task = -1
    account = Account()
    return workspaces.Workspaces(torch, account, lambda: capability), torch, account


def equal(got, want):
    assert got == want, "%s, want %s" % (got, want)


def sizes():
    for version, capability, want in (("1.13.1", (8, 6), 0), ("2.6.0", (8, 6), 8320 * KIB), ("2.6.0", (9, 0), 32 * MIB), ("2.6.0", (10, 0), 8320 * KIB),
                                      ("2.14.1", (8, 9), 8320 * KIB), ("2.14.1", (9, 0), 32 * MIB), ("2.14.1", (12, 0), 32 * MIB)):
        products, _, account = make(version, capability)
        products.take(0, False)
        products.take(0, False)
        equal(account.now, want)
    for text, want in ((":16:8", 128 * KIB), (":4096:2:16:8", 8320 * KIB), (":0:0", 0), (":8:1:24:2", 56 * KIB)):
        equal(make("2.6.0", CUBLAS_WORKSPACE_CONFIG=text)[0].size(), want)


def lt():
    """(now, peak) after a call of cuBLASLt."""
    for version, variables, now, peak in (
            ("1.13.1", {}, 0, MIB), ("2.6.0", {}, 8320 * KIB, 9344 * KIB), ("2.6.0", {"CUBLASLT_WORKSPACE_SIZE": "2048"}, 8320 * KIB, 10368 * KIB),
            ("2.9.0", {}, 9344 * KIB, 9344 * KIB), ("2.14.1", {}, 8320 * KIB, 8320 * KIB),
            ("2.14.1", {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "0"}, 9344 * KIB, 9344 * KIB), ("2.8.0", {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "1"}, 8320 * KIB, 8320 * KIB)):
        products, _, account = make(version, **variables)
        products.take(0, True)
        equal((account.now, account.peak), (now, peak))


def handles():
    """One for each thread and device, of which a later thread uses those of an ended one; one for backward passes; one workspace for each stream."""
    products, torch, account = make("2.6.0", CUBLAS_WORKSPACE_CONFIG=":1:1")

    def after(index=0, stream=0, task=-1):
        account.current, torch.task = stream, task
        products.take(index, False)
        return account.now // KIB

    def in_threads(count):
        barrier = threading.Barrier(count)

        def work():
            after()
            barrier.wait()

        threads = [threading.Thread(target=work) for _ in range(count)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return account.now // KIB

    equal([after(), after(), after(1), after(stream=7), after(task=3), after(task=4), after()], [1, 1, 2, 3, 4, 4, 4])
    equal([in_threads(1), in_threads(1), in_threads(3), in_threads(2)], [5, 5, 7, 7])
    products.functions()["_cuda_setCublasWorkspaceSize"](2 * KIB)
    equal([after(), products.size()], [8, 2 * KIB])
    products.functions()["_cuda_clearCublasWorkspaces"]()
    equal([account.now, after()], [0, 2])


class Matrix:
    def __init__(self, size, stride):
        self.size, self.stride, self.dim = lambda: size, lambda: stride, lambda: len(size)

    def is_contiguous(self):
        step = 1
        for length, stride in zip(reversed(self.size()), reversed(self.stride())):
            if length != 1 and stride != step:
                return False
            step *= length
        return True


def copies():
    for size, stride, want in (((3, 4), (4, 1), False), ((3, 4), (1, 3), False), ((3, 4), (9, 1), False), ((3, 4), (1, 9), False), ((3, 4), (0, 0), True),
                               ((3, 4), (8, 2), True), ((3, 4), (0, 1), True), ((1, 4), (0, 1), False), ((5, 3, 4), (12, 4, 1), False),
                               ((5, 3, 4), (0, 4, 1), False), ((5, 3, 4), (1, 20, 5), True), ((5, 3, 4), (12, 1, 3), False), ((5, 3, 4), (0, 0, 0), True)):
        equal((size, stride, workspaces.needs_copy(Matrix(size, stride))), (size, stride, want))


sizes()
lt()
handles()
copies()
