"""Memory that the matrix products of CUDA take beside their results. cuBLAS has a workspace for each handle and stream, cuBLASLt
one for a call or likewise, and an operand whose layout cuBLAS cannot read is copied. PyTorch takes all of it from its own allocator.

A handle belongs to a thread and a device while the thread lives. PyTorch runs backward passes in one thread for each device, which
has a handle too; here they run in the thread that asks for them."""
import os
import re
import threading
import warnings

from . import errors

KIB, MIB = 1 << 10, 1 << 20
DEFAULT = 2 * 4096 * KIB + 8 * 16 * KIB  # :4096:2:16:8, cuBLAS' own default
LARGE = 32 * MIB  # what NVIDIA recommends from Hopper on
LT = 1024  # KiB
LT_LIMIT = 65535 * 32  # rows or columns up to which the first versions use cuBLASLt

PRODUCTS = frozenset(("mm", "bmm", "addmm", "addmm_", "baddbmm", "baddbmm_", "addbmm", "addbmm_", "mv", "addmv", "addmv_", "dot", "vdot",
                      "_addmm_activation", "_scaled_mm", "_int_mm", "linalg_solve_triangular", "triangular_solve"))
WITH_LT = frozenset(("_addmm_activation", "_scaled_mm", "_int_mm"))  # addmm only with a bias
# Where in the arguments the operands of a product are that have to be in cuBLAS' layout.
MATRICES = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "addmm_": (1, 2), "baddbmm": (1, 2), "baddbmm_": (1, 2), "mv": (0,), "addmv": (1,),
            "addmv_": (1,)}


class Window:
    """The handles of a thread, by device. Another thread uses them when this one has ended."""

    def __init__(self, free):
        self.handles, self.free = {}, free

    def __del__(self):
        for index, number in self.handles.items():
            self.free.setdefault(index, []).append(number)


class Workspaces:
    def __init__(self, torch, memory, capability):
        self.torch, self.memory, self.capability = torch, memory, capability
        self.version = errors.version(torch)
        self.held = {}  # the tag of each workspace, by handle, stream, and whether it is cuBLASLt's
        self.free, self.made = {}, 0
        self.threads = threading.local()
        self.sizes = {}  # what a program sets, by whether it is cuBLASLt's

    def rule_of(self, func):
        """A function for the mode: books what an operation takes beside its results. None for most operations."""
        space, name = func._schema.name.split("::")
        if space != "aten" or name not in PRODUCTS:
            return None
        names = [a.name for a in func._schema.arguments]
        places = MATRICES.get(name, ())

        def book(index, args, kwargs, result):
            if kwargs:
                args = args + tuple(kwargs.get(n) for n in names[len(args):])
            tensors = [arg for arg in args if isinstance(arg, self.torch.Tensor)]
            if any(tensor.layout is not self.torch.strided or tensor.numel() == 0 for tensor in tensors):
                return
            lt = name in WITH_LT or name == "addmm" and self.takes_lt(args)
            copies = [self.memory.workspace(index, args[at].numel() * args[at].element_size()) for at in places if needs_copy(args[at])]
            self.take(index, lt)
            del copies  # they live while the operation runs

        return book

    def takes_lt(self, args):
        """Whether cuBLASLt adds the bias of an addmm."""
        torch, (bias, first, second), beta = self.torch, args[:3], args[3] if len(args) > 3 else None
        if os.environ.get("DISABLE_ADDMM_CUDA_LT") == "1" and self.version >= (2, 0):
            return False
        half = first.dtype in (torch.float16, torch.bfloat16)
        if (beta not in (None, 1) or bias.dim() != 1 or bias.size(0) != second.size(1) or not bias.is_contiguous() or min(second.size()) <= 1
                or not half and first.dtype not in (torch.float32, torch.float64)):
            return False
        return self.version >= (2, 0) or (max(*first.size(), *second.size()) < LT_LIMIT and (not half or all(map(is_whole, (first, second)))))

    def take(self, index, lt):
        """Books the workspaces of a call, if they are not yet there."""
        own = lt and not (self.version >= (2, 7) and self.unified())
        kept = self.memory.workspace(index, self.size_lt()) if own and self.version < (2, 9) else None
        if self.version >= (2, 0):  # before, cuBLAS takes its workspace from the driver
            handle, stream = self.handle(index), self.memory.stream(index)
            self.hold(index, (index, handle, stream, False), self.size())
            if own and self.version >= (2, 9):
                self.hold(index, (index, handle, stream, True), self.size_lt())
        del kept  # it lives as long as the call

    def hold(self, index, key, size):
        tag = self.held.get(key)
        if tag is None or tag.block is not None and tag.block.requested < size:
            self.held[key] = self.memory.workspace(index, size)

    def handle(self, index):
        if self.torch._C._current_graph_task_id() != -1:
            return "backward"
        window = getattr(self.threads, "window", None)
        if window is None:
            window = self.threads.window = Window(self.free)
        number = window.handles.get(index)
        if number is None:
            try:
                number = self.free[index].pop()
            except (KeyError, IndexError):
                self.made += 1
                number = self.made
            window.handles[index] = number
        return number

    def size(self):
        if False in self.sizes:
            return self.sizes[False]
        major, minor = self.capability()
        # From 2.12 on as on Hopper also on Blackwell.
        size = LARGE if (major, minor) == (9, 0) or self.version >= (2, 12) and 9 <= major <= 12 else DEFAULT
        text = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
        if text is None:
            return size
        parts = re.findall(r":([0-9]+):([0-9]+)", text)
        if not parts:
            warnings.warn("Could not parse CUBLAS_WORKSPACE_CONFIG, using default workspace size of %d bytes." % size)
            return size
        return sum(int(each) * KIB * int(count) for each, count in parts)

    def size_lt(self):
        if True in self.sizes:
            return self.sizes[True]
        found = re.match(r"\s*\+?([0-9]+)", os.environ.get("CUBLASLT_WORKSPACE_SIZE", "")) if self.version >= (2, 1) else None
        size = (int(found.group(1)) if found else LT) * KIB
        return min(size, self.size()) if self.version >= (2, 7) and self.unified() else size

    def unified(self):
        """Whether cuBLASLt uses the workspace of cuBLAS: from 2.12 on unless the user says otherwise, before if they do."""
        said = os.environ.get("TORCH_CUBLASLT_UNIFIED_WORKSPACE")
        return said != "0" if self.version >= (2, 12) else said == "1"

    def clear(self):
        self.held.clear()

    def functions(self):
        """The functions of torch._C."""
        def setter(lt):
            def put(size):
                self.sizes[lt] = size

            return put

        return {
            "_cuda_clearCublasWorkspaces": self.clear,
            "_cuda_getCublasWorkspaceSize": self.size, "_cuda_getCublasLtWorkspaceSize": self.size_lt,
            "_cuda_setCublasWorkspaceSize": setter(False), "_cuda_setCublasLtWorkspaceSize": setter(True),
            "_cuda_resetCublasWorkspaceSize": lambda: self.sizes.pop(False, None), "_cuda_resetCublasLtWorkspaceSize": lambda: self.sizes.pop(True, None),
        }


def is_whole(matrix):
    """Whether a matrix is one piece of memory, by rows or by columns."""
    (rows, columns), strides = matrix.size(), matrix.stride()
    return strides in ((columns, 1), (1, rows))


def needs_copy(tensor):
    """Whether cuBLAS cannot read a matrix, or a batch of them, where it is: neither its rows nor its columns are without gaps."""
    (rows, columns), (down, right) = tensor.size()[-2:], tensor.stride()[-2:]
    if right == 1 and down >= max(1, columns) or down == 1 and right >= max(1, rows):
        return False
    if tensor.dim() == 2:
        return not dense(rows, columns, down, right)
    return not (tensor.is_contiguous() and down and right)


def dense(rows, columns, down, right):
    """Whether a matrix has neither gaps nor overlaps. The strides of dimensions of size 1 say nothing."""
    return (columns == 1 or right == 1) and (rows == 1 or down == columns) or (rows == 1 or down == 1) and (columns == 1 or right == rows)
