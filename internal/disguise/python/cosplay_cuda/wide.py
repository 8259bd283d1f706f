"""Collectives of floating point of 16 and 8 bits, which gloo lacks in some builds and then refuses in another thread. What is only
moved, moves as bytes; what is added up is added up in float32 and rounded."""

ADDS_UP = ("allreduce_", "allreduce_coalesced_", "reduce_", "reduce_scatter_", "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_")
# NCCL takes the parts of all processes in one tensor of any shape; gloo takes the shape of one part, with a longer first dimension.
IN_ONE = ("_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_", "_allgather_base_", "allgather_into_tensor_coalesced_")


def make(torch):
    """A function that runs a collective."""
    low, Tensor = (torch.float16, torch.bfloat16), torch.Tensor
    moved = low + tuple(kind for name, kind in vars(torch).items() if name.startswith("float8_") and isinstance(kind, torch.dtype))

    def replaced(value, kinds, replace):
        if isinstance(value, Tensor):
            return replace(value) if value.dtype in kinds else value
        if type(value) in (list, tuple):
            return [replaced(part, kinds, replace) for part in value]
        return value

    def as_bytes(tensor):
        return (tensor if tensor.dim() else tensor.reshape(1)).view(torch.uint8)

    def flat(value):
        if isinstance(value, Tensor):
            return value.view(-1) if value.is_contiguous() else value
        return [flat(part) for part in value] if type(value) in (list, tuple) else value

    def check(name, output, part, group):
        """NCCL's own rule. Some versions of gloo end the process instead."""
        if name.startswith("_allgather"):
            output, part, text = part, output, "output tensor size must be equal to world_size times input tensor size"
        else:
            text = "input tensor must be the same size as output size times world size"
        size = getattr(group, "size", None) or torch.distributed.ProcessGroup.unbox(group).size
        if part.numel() != output.numel() * size():
            raise ValueError(text)

    def run(func, *args, **kwargs):
        name, pairs = func._schema.name.split("::")[1], []
        if name in IN_ONE:
            if isinstance(args[0], Tensor):
                check(name, *args[:3])
            args = tuple(map(flat, args[:2])) + args[2:]

        def as_float32(tensor):
            pairs.append((tensor, tensor.float()))
            return pairs[-1][1]

        how = (low, as_float32) if name in ADDS_UP else (moved, as_bytes)
        result = func(*replaced(args, *how), **{key: replaced(value, *how) for key, value in kwargs.items()})
        if pairs:
            (result[-1] if isinstance(result, (list, tuple)) else result).wait()
            for tensor, sum in pairs:
                tensor.copy_(sum)
        return result

    return run
