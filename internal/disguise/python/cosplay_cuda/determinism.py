"""torch.use_deterministic_algorithms(True): the errors of operations that only CUDA computes in a random order."""
import os
import warnings

from . import errors
from .workspaces import PRODUCTS

# What PyTorch calls the operation in the error, by its name.
ALERTS = {
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d_backward_cuda", "_adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "adaptive_max_pool2d_backward": "adaptive_max_pool2d_backward_cuda", "avg_pool3d_backward": "avg_pool3d_backward_cuda",
    "_ctc_loss_backward": "ctc_loss_backward_gpu", "fractional_max_pool2d_backward": "fractional_max_pool2d_backward_cuda",
    "fractional_max_pool3d_backward": "fractional_max_pool3d_backward_cuda", "grid_sampler_2d_backward": "grid_sampler_2d_backward_cuda",
    "grid_sampler_3d_backward": "grid_sampler_3d_backward_cuda", "histc": "_histc_cuda", "index_reduce": "index_reduce_cuda", "kthvalue": "kthvalue CUDA",
    "max_pool3d_with_indices_backward": "max_pool3d_with_indices_backward_cuda", "max_unpool2d": "max_unpooling2d_forward_out",
    "max_unpool3d": "max_unpooling3d_forward_out", "put": "put_", "reflection_pad1d_backward": "reflection_pad1d_backward_out_cuda",
    "reflection_pad2d_backward": "reflection_pad2d_backward_cuda", "reflection_pad3d_backward": "reflection_pad3d_backward_out_cuda",
    "replication_pad1d_backward": "replication_pad1d_backward_cuda", "replication_pad2d_backward": "replication_pad2d_backward_cuda",
    "replication_pad3d_backward": "replication_pad3d_backward_cuda", "upsample_linear1d_backward": "upsample_linear1d_backward_out_cuda",
    "upsample_bilinear2d_backward": "upsample_bilinear2d_backward_out_cuda", "upsample_bicubic2d_backward": "upsample_bicubic2d_backward_out_cuda",
    "upsample_trilinear3d_backward": "upsample_trilinear3d_backward_out_cuda",
    "_upsample_bilinear2d_aa_backward": "upsample_bilinear2d_aa_backward_out_cuda",
    "_upsample_bicubic2d_aa_backward": "upsample_bicubic2d_aa_backward_out_cuda",
}
TEXT = ("%s does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True%s)'. You can %sfile an issue at "
        "https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support for this operation.")
OFF = "turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's acceptable for your application. You can also "
CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
CUBLAS_TEXT = ("Deterministic behavior was enabled with either `torch.use_deterministic_algorithms(True)` or `at::Context::setDeterministicAlgorithms(true)`, "
               "but this operation is not deterministic because it uses CuBLAS and you have CUDA >= 10.2. To enable deterministic behavior in this case, "
               "you must set an environment variable before running your PyTorch application: " + CUBLAS + "=:4096:8 or " + CUBLAS + "=:16:8. "
               "For more information, go to https://docs.nvidia.com/cuda/cublas/index.html#%s")


def conditional(torch, overload):
    """Operations that have a random order with some arguments only: what PyTorch calls them then, or None, by their arguments."""
    old = errors.version(torch) < (2, 0)

    def cumsum(args):
        return "cumsum_cuda_kernel" if old and (args[0].is_floating_point() or args[0].is_complex()) else None

    def median(args):
        return "median CUDA with indices output" if overload.startswith("dim") else None

    def bincount(args):
        return "_bincount_cuda" if old or len(args) > 1 and args[1] is not None else None

    def loss(args):
        return "nll_loss2d_forward_out_cuda_template" if args[3] else None

    def bag(args, mode=7):
        return "embedding_bag_backward_cuda_max" if args[mode] == 2 else None

    def scatter_add(args):
        return "scatter_add_cuda_kernel" if old and args[0].dim() > 1 else None

    def scatter_reduce(args):
        kind = args[4] if len(args) > 4 else ""
        if old:
            return "scatter_reduce_cuda"
        return "scatter_reduce_cuda_%s_" % kind if kind in ("sum", "prod", "mean") else None

    return {"cumsum": cumsum, "median": median, "nanmedian": median, "bincount": bincount, "nll_loss2d_forward": loss, "_embedding_bag_dense_backward": bag,
            "_embedding_bag_backward": lambda args: bag(args, 8),             "scatter_add": scatter_add, "scatter_reduce": scatter_reduce}


def check_of(torch, func):
    """Refuses a call if the program has asked for deterministic algorithms: a function of the arguments, or None."""
    space, _, name = func._schema.name.partition("::")
    name = name.rstrip("_")
    if space != "aten":
        return None
    enabled, warned = torch.are_deterministic_algorithms_enabled, getattr(torch, "is_deterministic_algorithms_warn_only_enabled", lambda: False)

    def refuse(text):
        if not warned():
            raise RuntimeError(text)
        warnings.warn(text)

    if name in PRODUCTS:
        link = "cublasApi_reproducibility" if errors.version(torch) < (2, 0) else "results-reproducibility"

        def product(args):
            if enabled() and os.environ.get(CUBLAS) not in (":4096:8", ":16:8"):
                refuse(CUBLAS_TEXT % link)

        return product
    rule = conditional(torch, func._overloadname).get(name)
    if name not in ALERTS and rule is None:
        return None

    def check(args):
        if enabled():
            alert = ALERTS.get(name) or rule(args)
            if alert:
                refuse(TEXT % (alert, ", warn_only=True" if warned() else "", "" if warned() else OFF))

    return check
