"""torch.jit.trace. PyTorch records most operations before the mode sees them. It records a convolution in what its
functions run, which the mode would hide, so there the mode is off and the result is booked afterwards."""
import functools

FUNCTIONS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution")
STARTS = ("_create_function_from_trace", "_create_function_from_trace_with_dict", "_create_graph_by_tracing")
METHODS = ("_create_method_from_trace", "_create_method_from_trace_with_dict")


def install(torch, devices):
    from torch.overrides import TorchFunctionMode

    recorded = {getattr(torch, name) for name in FUNCTIONS}
    of, put, Tensor = devices.of, devices.put, torch.Tensor

    class Recording(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if func not in recorded or torch._C._get_tracing_state() is None:
                return func(*args, **kwargs)
            places = {of(value) for value in (*args, *kwargs.values()) if isinstance(value, Tensor)}
            if len(places) != 1:
                return func(*args, **kwargs)  # raises PyTorch's error
            guard = torch._C._DisableTorchDispatch()
            try:
                result = func(*args, **kwargs)
            finally:
                del guard
            return put(result, places.pop())

    def wrap(holder, name):
        start = getattr(holder, name, None)
        if start is None:
            return

        @functools.wraps(start)
        def run(*args, **kwargs):
            with Recording():
                return start(*args, **kwargs)

        setattr(holder, name, run)

    for name in STARTS:
        wrap(torch._C, name)
    for name in METHODS:
        wrap(torch._C.ScriptModule, name)
