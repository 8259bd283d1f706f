"""What a session without a GPU refuses, by the names that programs use: each error states the function. PyTorch's own
code below these names is in native.WITHOUT."""
import functools
import os
import sys
import warnings

from . import errors

# Functions of torch.cuda and its modules. Those with a value take this value, which changes nothing.
FUNCTIONS = {
    "": ("current_blas_handle", "current_solver_handle"),
    "graphs": ("export_dot", "export_graph_data"),
    "memory": ("change_current_allocator", "caching_allocator_disabled", "host_memory_stats", "host_memory_stats_as_nested_dict",
               "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats"),
    "nccl": ("all_gather", "all_reduce", "broadcast", "init_rank", "reduce", "reduce_scatter", "unique_id"),
    "profiler": ("init",),
    "gds": ("gds_register_buffer", "gds_deregister_buffer"),
    "tunable": ("get_cublaslt_requested_algo_count", "get_filename", "get_max_tuning_duration", "get_max_tuning_iterations", "get_results",
                "get_rotating_buffer_size", "get_validators", "mgpu_tune_gemm_in_file", "read_file", "set_cublaslt_requested_algo_count",
                "set_filename", "set_max_tuning_duration", "set_max_tuning_iterations", "set_numerical_check_tolerances",
                "set_rotating_buffer_size", "tune_gemm_in_file", "write_file", "write_file_on_exit"),
}
# The values that change nothing, by function; each other value is refused.
UNLESS = {
    "": {"set_sync_debug_mode": (0, "default")},
    "memory": {"caching_allocator_enable": (True,)},
    "tunable": {"enable": (False,), "tuning_enable": (False,), "record_untuned_enable": (False,)},
}
CLASSES = {
    "memory": ("CUDAPluggableAllocator",),
    "gds": ("GdsFile",),
    "green_contexts": ("GreenContext",),
}
INSTEAD = {
    "set_sync_debug_mode": "leave it at \"default\"",
    "sparse": "use torch.sparse_coo_tensor with device=\"cuda\"", "all_reduce": "use torch.distributed or torch.cuda.comm", "caching_allocator_enable": "leave it enabled",
}
# Settings of PyTorch's allocator that change how much memory a program takes, and that are not modelled.
UNMODELLED = ("backend", "expandable_segments", "garbage_collection_threshold", "per_process_memory_fraction")
HARMLESS = {"backend": ("native",), "expandable_segments": ("false", "False")}


def install(torch):
    for holder, names in FUNCTIONS.items():
        for name in names:
            replace(torch, holder, name, function(public(torch, holder, name), name))
    for holder, values in UNLESS.items():
        for name, accepted in values.items():
            replace(torch, holder, name, function(public(torch, holder, name), name, accepted))
    for holder, names in CLASSES.items():
        for name in names:
            kind = getattr(module_of(torch, holder), name, None)
            if kind is not None:
                kind.__new__ = staticmethod(function(public(torch, holder, name), name))
    # Programs make kernels when they are imported, and call them for the tensors of a GPU alone.
    torch.cuda.jiterator._JittedFunction.__call__ = function("A kernel of torch.cuda.jiterator", "jiterator")
    contexts = getattr(torch.cuda, "green_contexts", None)
    if contexts is not None:
        contexts.GreenContext.create = staticmethod(function("torch.cuda.green_contexts.GreenContext.create", "create"))
    for name in dir(torch.cuda.sparse):
        if name.endswith("Tensor"):
            shown = "torch.cuda.sparse." + name
            setattr(torch.cuda.sparse, name, type(name, (), {
                "__module__": "torch.cuda.sparse", "__new__": staticmethod(function(shown, "sparse"))}))


def public(torch, holder, name):
    """The name that programs use: torch.cuda.graph_pool_handle, although it is from torch.cuda.graphs."""
    short = getattr(torch.cuda, name, None)
    inner = getattr(module_of(torch, holder), name, None)
    return "torch.cuda." + name if short is inner or not holder else "torch.cuda.%s.%s" % (holder, name)


def module_of(torch, holder):
    return getattr(torch.cuda, holder, None) if holder else torch.cuda


def function(shown, name, accepted=()):
    def refuse(*args, **kwargs):
        given = list(args[:1]) or list(kwargs.values())[:1]
        if given and given[0] in accepted or not given and name == "caching_allocator_enable":
            return None
        raise errors.unsupported(shown, INSTEAD.get(name))

    return refuse


def replace(torch, holder, name, new):
    """Replaces a function in each module of torch.cuda that has it."""
    old = getattr(module_of(torch, holder), name, None)
    if old is None:
        return
    functools.update_wrapper(new, old)  # PyTorch's own code reads attributes of some
    for key, module in list(sys.modules.items()):
        if (key == "torch.cuda" or key.startswith("torch.cuda.")) and getattr(module, name, None) is old:
            setattr(module, name, new)


def warn_of_settings(pairs):
    """Warns of settings of the allocator that a session does not model. pairs are those of PYTORCH_CUDA_ALLOC_CONF."""
    found = ["%s:%s" % (name, value) for name, value in pairs if name in UNMODELLED and value not in HARMLESS.get(name, ())]
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") not in ("", "0"):
        found.append("PYTORCH_NO_CUDA_MEMORY_CACHING")
    if found:
        warnings.warn("%s of PyTorch's allocator is not modelled in this session: its host has no GPU, and memory is booked without it"
                      % " and ".join(found))


MATRICES = {"mm": "addmm_cuda", "addmm": "addmm_cuda", "bmm": "baddbmm_cuda", "baddbmm": "baddbmm_cuda", "mv": "addmv_impl_cuda",
            "addmv": "addmv_impl_cuda", "dot": "dot"}
SCALAR_NAMES = {"uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool"}


INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put")


def indices(torch, args):
    """An index is on the CPU or with the tensor; what is put there is with the tensor, or a number."""
    here = args[0].device
    for index in args[1]:
        if index is not None and index.device.type != "cpu" and index.device != here:
            raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (%s)" % here)
    # vmap expands a number, so that its strides are 0.
    if len(args) > 2 and isinstance(args[2], torch.Tensor) and any(args[2].stride()) and args[2].device != here:
        raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, %s and %s!" % (here, args[2].device))


def lengths(args):
    given = args[1]
    if given.device.type != "cpu":
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got %dD %s %s tensor"
                           % (given.dim(), given.device, given.type().rpartition(".")[2].replace("Tensor", "")))


def check_of(torch, capability, func):
    """What CUDA refuses of an operation that the CPU computes: a function of its arguments, or None."""
    namespace, _, name = func._schema.name.partition("::")
    if namespace == "quantized":
        def quantized(args):
            raise NotImplementedError("Could not run 'quantized::%s' with arguments from the 'QuantizedCUDA' backend." % name)

        return quantized
    if namespace != "aten":
        return None
    whole = {getattr(torch, dtype): shown for dtype, shown in SCALAR_NAMES.items()}
    if name in MATRICES:
        def floating(args):
            shown = whole.get(args[0].dtype)
            if shown is not None:
                raise RuntimeError("\"%s\" not implemented for '%s'" % (MATRICES[name], shown))

        return floating
    if name == "convolution":
        def convolution(args):
            shown = whole.get(args[0].dtype)
            if shown is not None:
                raise RuntimeError("\"slow_conv%dd_cuda\" not implemented for '%s'" % (max(args[0].dim() - 2, 2), shown))

        return convolution
    if name in INDEXING:
        return functools.partial(indices, torch)
    if name == "_pack_padded_sequence":
        return lengths
    if name == "_scaled_mm":
        def eighth(args):
            if capability() < (8, 9):
                raise RuntimeError("torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9, or ROCm MI300+")

        return eighth
    return None
