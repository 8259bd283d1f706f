"""The workspaces of cuDNN's convolutions. Their tensor cores read and write numbers by position, all channels of a pixel together; tensors
that lie by channel are copied. NVIDIA does not publish the sizes: these are what an H100 took with cuDNN 9.19, exactly in float16, and in
float32 within the size of the result (docs/developers/measured/h100-memory.md)."""

NAMES = ("convolution", "convolution_backward")


def workspace(name, args, result, capability, tf32):
    """The bytes that a convolution takes beside its results, one number or none."""
    backward = name == "convolution_backward"
    gradient, tensor, weight = args[:3] if backward else (result,) + tuple(args[:2])
    groups = args[9 if backward else 8]
    half = str(tensor.dtype) in ("torch.float16", "torch.bfloat16")
    cores = capability >= (7, 0) if half else capability >= (8, 0) and tf32 and str(tensor.dtype) == "torch.float32"
    single = weight.numel() == weight.size(0) * weight.size(1)
    if not cores or by_position(tensor) or groups > 1 and groups == tensor.size(1) or single:
        return []
    return [sum(part.numel() * part.element_size() for part in (tensor, weight, gradient))]


def by_position(tensor):
    """Whether the channels of a pixel lie together, as with channels_last."""
    return tensor.dim() > 3 and tensor.size(1) > 1 and tensor.stride(1) == 1
