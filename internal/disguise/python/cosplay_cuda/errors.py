"""The errors that programs see, in PyTorch's words where it has them."""
import re

GIB = 1024 ** 3
EXABYTE = GIB ** 2  # requests from here on are refused before the allocator searches
FORKED = "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method"


def size(count):
    """As PyTorch prints a size."""
    if count <= 1024:
        return "%d bytes" % count
    if count <= 1024 ** 2:
        return "%.2f KiB" % (count / 1024.0)
    if count <= GIB:
        return "%.2f MiB" % (count / 1024.0 ** 2)
    return "%.2f GiB" % (count / float(GIB))


def unsupported(what, why=None):
    """For what a session without a GPU cannot do."""
    return RuntimeError("%s is not available in this session: its host has no GPU, and the CPU computes%s" % (what, "; " + why if why else ""))


def invalid_device(torch):
    kind = getattr(torch, "AcceleratorError", RuntimeError)
    text = "CUDA error: invalid device ordinal"
    if kind is not RuntimeError:
        text += "\nGPU device may be out of range, do you have enough GPUs?"
    text += HINTS
    if version(torch) >= (2, 0):
        text += "\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    return kind(text)


HINTS = ("\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect."
         "\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1")


def of_cuda(torch, text, name):
    """An error of CUDA itself. name is CUDA's for its number."""
    kind = getattr(torch, "AcceleratorError", RuntimeError)
    text = "CUDA error: " + text
    if kind is not RuntimeError:
        text += "\nSearch for `%s' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information." % name
    text += HINTS
    if version(torch) >= (2, 0):
        text += "\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    return kind(text)


without_values = []  # the operations of which only compute = "cpu" has a result


def no_values(operation):
    """For what needs more than the shapes of tensors."""
    without_values.append(operation)
    return RuntimeError('%s needs the values of a tensor, and nothing is computed in this session: its host has compute = "shapes". '
                        'Use a host with compute = "cpu", or remove this operation from the program' % operation)


def no_shapes(torch, operation):
    without_values.append(operation)
    return NotImplementedError('PyTorch %s cannot infer the shape of the result of %s, and nothing is computed in this session: its host has '
                               'compute = "shapes". Use a host with compute = "cpu"' % (torch.__version__, operation))


def lacking(error):
    """The bytes that the CPU's allocator did not get; None for another error."""
    text = str(error)
    if "DefaultCPUAllocator" not in text:
        return None
    found = re.search(r"tried to allocate (\d+) bytes", text)
    return int(found.group(1)) if found else None


def too_large(bytes):
    """For memory that the device has, and this machine has not."""
    return RuntimeError("this machine has not the %s of memory that the program asks its GPU for. The session's host has no GPU, so that the memory "
                        "of tensors is this machine's; use a smaller model, or a machine with more memory" % size(bytes))


def no_addresses(bytes):
    return RuntimeError("this machine does not reserve %s for a tensor. No memory is needed for it, only addresses: raise the limit of ulimit -v, and set "
                        "vm.overcommit_memory to 0 or 1" % size(bytes))


def version(torch):
    """(2, 6) for "2.6.0+debian"."""
    parts = torch.__version__.split(".")
    return int(parts[0]), int(parts[1])


def out_of_memory(torch, device, state, requested, free, total):
    """The error of an allocation that does not fit. state is the device's allocator."""
    allocated, reserved = state.all.allocated_bytes.now, state.all.reserved_bytes.now
    kind = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
    if requested >= EXABYTE:
        return kind("CUDA out of memory. Tried to allocate more than 1EB memory.")
    if version(torch) < (2, 1):
        text = ("CUDA out of memory. Tried to allocate %s (GPU %d; %s total capacity; %s already allocated; %s free; %s%s reserved in total by "
                "PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation "
                "for Memory Management and PYTORCH_CUDA_ALLOC_CONF")
        allowed = "" if state.limit is None else "%s allowed; " % size(state.limit)
        return kind(text % (size(requested), device, size(total), size(allocated), size(free), allowed, size(reserved)))
    text = ("CUDA out of memory. Tried to allocate %s. GPU %d has a total capac%s of %s of which %s is free. Including non-PyTorch memory, this "
            "process has %s memory in use. %sOf the allocated memory %s is allocated by PyTorch, %sand %s is reserved by PyTorch but unallocated. "
            "If reserved but unallocated memory is large try setting %s to avoid fragmentation.  See documentation for Memory Management %s")
    newer, private = version(torch) >= (2, 2), state.in_private_pools()
    allowed = "" if state.limit is None else "%s allowed; " % size(state.limit)
    where = " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    return kind(text % (
        size(requested), device, "ity" if newer else "ty", size(total), size(free), size(total - free), allowed, size(allocated + private),
        "with %s allocated in private pools (e.g., CUDA Graphs), " % size(private) if private else "", size(reserved - allocated - private), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" if newer else "max_split_size_mb",
        where if newer else "and PYTORCH_CUDA_ALLOC_CONF"))


# Operations whose check has their name alone; that of all others has an underscore and the overload before it.
STRUCTURED = frozenset(("addmm", "addmv", "baddbmm", "bmm", "cat", "gather", "mm", "nll_loss_backward", "nll_loss_forward", "scatter"))


def two_devices(torch, operation, overload, plain, found):
    """For an operation on tensors of several devices. found has the device and the argument's name of each first one."""
    first, second, argument = device_name(found[0][0]), device_name(found[1][0]), found[1][1]
    if operation in ("mkldnn_rnn_layer", "lstm", "gru", "rnn_tanh", "rnn_relu"):
        other = "hidden" if argument.startswith("h") else "parameter"
        return RuntimeError("Input and %s tensors are not at the same device, found input tensor at %s and %s tensor at %s" % (other, first, other, second))
    operation = operation.replace("_for_cpu", "")
    if plain:
        return RuntimeError("Expected all tensors to be on the same device, but found at least two devices, %s and %s!" % (first, second))
    method = operation if operation in STRUCTURED else "%s_%s" % ("" if overload == "default" else overload, operation)
    method = "%s_%s" % ("wrapper_CUDA" if version(torch) >= (2, 0) else "wrapper", method)
    if version(torch) >= (2, 9):
        return RuntimeError("Expected all tensors to be on the same device, but got %s is on %s, different from other tensors on %s "
                            "(when checking argument in method %s)" % (argument, second, first, method))
    return RuntimeError("Expected all tensors to be on the same device, but found at least two devices, %s and %s! "
                        "(when checking argument for argument %s in method %s)" % (first, second, argument, method))


def convolution(input, weight, bias):
    """Convolutions compare types, which have the device."""
    kind, other = ("weight", weight) if weight.device != input.device else ("bias", bias)
    text = "Input type (%s) and %s type (%s) should be the same" % (input.type(), kind, other.type())
    if kind == "weight" and not input.is_cuda:
        text += " or input should be a MKLDNN tensor and weight is a dense tensor"
    return RuntimeError(text)


def device_name(index):
    return "cpu" if index < 0 else "cuda:%d" % index
