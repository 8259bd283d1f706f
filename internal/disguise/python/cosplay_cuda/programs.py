"""The parts of PyTorch above tensors that have code for CUDA: autograd, AMP, checkpoints, compilation."""
import ctypes
import functools
import inspect
import warnings

from . import amp, errors, parallel
from .booking import UNSET
from .devices import script_as
from .storages import CPU, OPEN


def install(torch, devices, mode, session, capability):
    autograd(torch, devices)
    functions(torch, devices, session["compute"] != "shapes")
    inference(torch)
    optimizers(torch, devices)
    bf16(torch, capability)
    amp.install(torch, devices)
    parallel.install(torch, devices)
    compile(torch)
    cudnn(torch)
    ctc(torch, devices)
    rank(torch, devices)
    compared(torch, devices)


def compared(torch, devices):
    """These functions compare devices in C++, where all tensors are on the CPU, and their parts accept others or have another error."""
    along = "Expected tensor to have {first} Device, but got tensor with {other} Device (while checking arguments for torch.take_along_dim():)"
    quantile = "quantile() {name} tensor must be on the same device as the input tensor"

    def compare(original, second, text):
        @functools.wraps(original)
        def run(input, *args, **kwargs):
            for name, value in (second, args[0] if args else kwargs.get(second)), ("out", kwargs.get("out")):
                if isinstance(value, torch.Tensor) and devices.of(value) != devices.of(input):
                    raise RuntimeError(text.format(name=name, first=input.device, other=value.device))
            return original(input, *args, **kwargs)

        return run

    for name, second, text in ("take_along_dim", "indices", along), ("quantile", "q", quantile), ("nanquantile", "q", quantile):
        for holder in torch, torch.Tensor:
            setattr(holder, name, compare(getattr(holder, name), second, text))


def rank(torch, devices):
    """The rank of an empty matrix is made from its sizes alone, on the device of the matrix."""
    original = torch.linalg.matrix_rank

    @functools.wraps(original)
    def matrix_rank(input, *args, **kwargs):
        with devices.on(devices.of(input)):
            return original(input, *args, **kwargs)

    torch.linalg.matrix_rank = matrix_rank


def ctc(torch, devices):
    """PyTorch moves the lengths to the device of the loss, below the functions that programs call."""
    original = torch.ctc_loss

    @functools.wraps(original)
    def ctc_loss(log_probs, targets, input_lengths, target_lengths, *args, **kwargs):
        index = devices.of(log_probs)
        if isinstance(target_lengths, torch.Tensor) and devices.of(target_lengths) != index >= 0:
            target_lengths = devices.move(target_lengths, index)
        return original(log_probs, targets, input_lengths, target_lengths, *args, **kwargs)

    torch.ctc_loss = ctc_loss


def cudnn(torch):
    """Programs find cuDNN as on a GPU. The CPU's recurrent networks do not need their weights in one piece."""
    backend = torch.backends.cudnn
    backend.is_acceptable = lambda tensor: bool(backend.enabled) and tensor.is_cuda and tensor.dtype in backend.CUDNN_TENSOR_DTYPES
    torch._use_cudnn_rnn_flatten_weight = lambda: False


def autograd(torch, devices):
    """Memory that PyTorch makes in a backward pass is on the device of the tensor that it starts from."""
    local, Tensor, activity = devices.local, torch.Tensor, devices.memory.activity

    def placed(roots, gradients):
        """The gradients that a program gives are on the devices of their tensors; a number is moved there."""
        roots = [roots] if isinstance(roots, Tensor) else roots
        if isinstance(gradients, Tensor):
            return placed(roots, [gradients])
        if not isinstance(gradients, (list, tuple)) or len(roots) != len(gradients):
            return gradients  # PyTorch's own checks are next
        result = []
        for at, (root, gradient) in enumerate(zip(roots, gradients)):
            if isinstance(root, Tensor) and isinstance(gradient, Tensor) and devices.of(root) != devices.of(gradient):
                if gradient.dim() > 0:
                    raise RuntimeError("invalid gradient at index %d - expected device %s but got %s" % (at, root.device, gradient.device))
                gradient = devices.move(gradient, devices.of(root))
            result.append(gradient)
        return type(gradients)(result) if type(gradients) in (list, tuple) else result

    def wrap(function, gradients):
        first_name = next(iter(inspect.signature(function).parameters))
        place = list(inspect.signature(function).parameters).index(gradients) - 1

        @functools.wraps(function)
        def run(*args, **kwargs):
            tensors, args = (args[0], args[1:]) if args else (kwargs.pop(first_name, ()), args)
            if kwargs.get(gradients) is not None:
                kwargs[gradients] = placed(tensors, kwargs[gradients])
            elif len(args) > place and args[place] is not None:
                args = args[:place] + (placed(tensors, args[place]),) + args[place + 1:]
            first = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors), None)
            index = devices.of(first) if isinstance(first, torch.Tensor) else UNSET
            before, local.ambient = local.ambient, index
            target, local.target = local.target, UNSET
            stage = activity.turn(activity.BACKWARD)
            try:
                return function(tensors, *args, **kwargs)
            finally:
                activity.turn(stage)
                local.ambient, local.target = before, target
                if before == UNSET and local.mode is not None:
                    local.mode.special = None  # an error can end the pass within attention

        return run

    for name, gradients in ("backward", "grad_tensors"), ("grad", "grad_outputs"):
        original = getattr(torch.autograd, name)
        setattr(torch.autograd, name, wrap(original, gradients))
        script_as(torch, original, getattr(torch.autograd, name), name)


def functions(torch, devices, values):
    """A Function of the program gets zeros for a result that has no gradient: they are on the device of the result. The gradients that
    it returns have to be on the devices of its operands."""
    module, Tensor, tag_of = torch.autograd.function, torch.Tensor, devices.tag_of
    kind, node = getattr(module, "_SingleLevelFunction", module.Function), module.BackwardCFunction
    backward = node.apply

    def place(tensor):
        tag = tag_of(tensor)
        return CPU if tag is None else tag.index

    def apply(cls, *args, **kwargs):
        found = super(kind, cls).apply(*args, **kwargs)
        results = found if isinstance(found, tuple) else (found,)
        for result in results:
            if isinstance(result, Tensor) and isinstance(result.grad_fn, node):
                result.grad_fn._cosplay_places = (
                    [(place(arg) if arg.requires_grad else OPEN) if isinstance(arg, Tensor) else None for arg in args],
                    [place(part) if isinstance(part, Tensor) else OPEN for part in results])
                break
        return found

    def received(gradient, wanted):
        if wanted < 0 or not isinstance(gradient, Tensor) or place(gradient) == wanted:
            return gradient
        if place(gradient) == OPEN:
            return devices.put(gradient, wanted)
        if values and gradient.layout == torch.strided and bool(gradient.ne(0).any()):
            raise RuntimeError("a hook has changed the device of a gradient: expected %s but got %s" % (devices.device(wanted), gradient.device))
        return torch.zeros(gradient.shape, dtype=gradient.dtype, device=devices.device(wanted))

    def returned(self, gradient, at, wanted):
        if wanted == OPEN or type(gradient) is not Tensor or place(gradient) in (wanted, OPEN):
            return gradient
        if gradient.dim() > 0:
            raise RuntimeError("Function %s returned an invalid gradient at index %d - expected device %s but got %s" % (
                type(self).__name__, at, devices.device(wanted) if wanted >= 0 else devices.cpu, gradient.device))
        return devices.move(gradient, wanted)

    @functools.wraps(backward)
    def run(self, *gradients):
        operands, results = getattr(self, "_cosplay_places", ((), ()))
        if len(results) == len(gradients):
            gradients = map(received, gradients, results)
        found = backward(self, *gradients)
        several = list(found) if isinstance(found, tuple) else [found]
        for at, number in enumerate(n for n, wanted in enumerate(operands[:len(several)]) if wanted is not None):
            several[number] = returned(self, several[number], at, operands[number])
        return tuple(several)

    kind.apply, node.apply = classmethod(apply), run


def inference(torch):
    """Autograd's kernels take composite operations apart before a mode sees them. inference_mode leaves these kernels out, and a
    composite such as Tensor.to does not state whether it makes memory. So they run here, as under no_grad."""
    include, exclude = including(torch), torch._C._dispatch_tls_set_dispatch_key_excluded
    key, kind = torch._C.DispatchKey.AutogradFunctionality, torch.inference_mode
    enter = kind.__enter__

    def run_kernels(mode):
        if mode:
            exclude(key, False)
        include(key, bool(mode))  # PyTorch restores its settings of the thread when it leaves the mode

    @functools.wraps(enter)
    def __enter__(self):
        result = enter(self)
        run_kernels(self.mode)
        return result

    kind.__enter__ = __enter__
    module = torch.autograd.grad_mode
    enter_context = getattr(module, "_enter_inference_mode", None)
    if enter_context is not None:
        @functools.wraps(enter_context)
        def enter_inference_mode(mode):
            context = enter_context(mode)
            run_kernels(mode)
            return context

        module._enter_inference_mode = enter_inference_mode


def including(torch):
    """The function that includes kernels in all operations of the thread. PyTorch 1.13 has it in C++ alone."""
    include = getattr(torch._C, "_dispatch_tls_set_dispatch_key_included", None)
    if include is not None:
        return include
    function = getattr(ctypes.CDLL(torch._C.__file__), "_ZN3c104impl29tls_set_dispatch_key_includedENS_11DispatchKeyEb")
    function.argtypes, function.restype = [ctypes.c_uint16, ctypes.c_bool], None
    return lambda key, included: function(int(key), included)


def optimizers(torch, devices):
    """Optimizers and clip_grad_norm_ handle the tensors of a device together. PyTorch's C++ code groups them, and sees the CPU."""
    group = getattr(torch._C, "_group_tensors_by_device_and_dtype", None)
    if group is None:
        return

    def by_device(lists, with_indices=False):
        found = {}
        for (device, dtype), (parts, indices) in group(lists, with_indices).items():
            places = [devices.of(tensor) for tensor in parts[0]]
            for index in dict.fromkeys(places):
                chosen = [number for number, place in enumerate(places) if place == index]
                found[devices.device(index) if index >= 0 else device, dtype] = (
                    [[part[number] for number in chosen] if part else [] for part in parts], [indices[number] for number in chosen] if indices else [])
        return found

    torch._C._group_tensors_by_device_and_dtype = by_device


def bf16(torch, capability):
    # From 2.4 on PyTorch counts emulation, which all GPUs have.
    emulates = errors.version(torch) >= (2, 4)

    def is_bf16_supported(including_emulation=True):
        return capability() >= (8, 0) or emulates and including_emulation

    torch.cuda.is_bf16_supported = is_bf16_supported


def compile(torch):
    if not hasattr(torch, "compile"):
        return
    warned = []

    def compile(model=None, **kwargs):
        if not warned:
            warned.append(True)
            warnings.warn("torch.compile is not available in this session: its host has no GPU, and the CPU computes; the code runs uncompiled")
        return model if model is not None else lambda function: function

    torch.compile = compile
