"""Masks of the deprecated type uint8, which PyTorch 2.0 and later refuse. CUDA's masked_select indexes with its mask, and warns as an
index does."""
from . import errors


def rule(torch, func):
    """A function that runs an operation as a GPU does; None if the CPU does so."""
    if func._schema.name != "aten::masked_select" or errors.version(torch) >= (2, 0):
        return None
    index = torch.ops.aten.index

    def run(args, kwargs):
        source, mask = args
        if mask.dtype is not torch.uint8:
            return func(*args, **kwargs)
        source, mask = torch.broadcast_tensors(source if source.dim() else source.unsqueeze(0), mask)
        return index.Tensor_out(source, [mask], **kwargs) if kwargs else index.Tensor(source, [mask])

    return run
