"""Collectives of 16-bit floating point, which gloo lacks in some builds and then refuses in another thread. What is only
moved, moves as bytes; what is added up is added up in float32 and rounded."""

ADDS_UP = ("allreduce_", "allreduce_coalesced_", "reduce_", "reduce_scatter_", "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_")


def make(torch):
    """A function that runs a collective."""
    low, Tensor = (torch.float16, torch.bfloat16), torch.Tensor

    def replaced(value, replace):
        if isinstance(value, Tensor):
            return replace(value) if value.dtype in low else value
        if type(value) in (list, tuple):
            return [replaced(part, replace) for part in value]
        return value

    def as_bytes(tensor):
        return (tensor if tensor.dim() else tensor.reshape(1)).view(torch.uint8)

    def run(func, *args, **kwargs):
        pairs = []

        def as_float32(tensor):
            pairs.append((tensor, tensor.float()))
            return pairs[-1][1]

        replace = as_float32 if func._schema.name.split("::")[1] in ADDS_UP else as_bytes
        result = func(*replaced(args, replace), **{key: replaced(value, replace) for key, value in kwargs.items()})
        if pairs:
            (result[-1] if isinstance(result, (list, tuple)) else result).wait()
            for tensor, sum in pairs:
                tensor.copy_(sum)
        return result

    return run
