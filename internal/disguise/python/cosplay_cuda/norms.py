"""The parts of SyncBatchNorm, for which PyTorch has kernels for CUDA alone. Statistics are in float32, as CUDA's."""
from . import provided


def install(torch):
    low = (torch.float16, torch.bfloat16)

    def wide(tensor):
        return tensor.float() if tensor.dtype in low else tensor

    def around(values, tensor):
        """Values of channels in the shape that goes with a batch."""
        return values.reshape([1, -1] + [1] * (tensor.dim() - 2))

    def dims(tensor):
        return [0] + list(range(2, tensor.dim()))

    def stats(input, eps):
        values = wide(input)
        mean = values.mean(dims(values))
        variance = (values - around(mean, values)).square().mean(dims(values))
        return mean, (variance + eps).rsqrt()

    def gather(input, mean, invstd, running_mean, running_var, momentum, eps, counts):
        counts = counts.to(mean.dtype).reshape(-1, 1)
        count = counts.sum()
        whole = (mean * counts).sum(0) / count
        variance = ((invstd.square().reciprocal() - eps + (mean - whole).square()) * counts).sum(0) / count
        for running, value in ((running_mean, whole), (running_var, variance * (count / (count - 1)))):
            if running is not None:
                running.mul_(1 - momentum).add_((momentum * value).to(running.dtype))
        return whole, (variance + eps).rsqrt()

    def gather_of_one_count(input, mean, invstd, running_mean, running_var, momentum, eps, count):
        return gather(input, mean, invstd, running_mean, running_var, momentum, eps, torch.full((mean.shape[0],), float(count)))

    def elemt(input, weight, bias, mean, invstd, eps):
        scale = invstd if weight is None else invstd * wide(weight)
        result = (wide(input) - around(mean, input)) * around(scale, input)
        return (result if bias is None else result + around(wide(bias), input)).to(input.dtype)

    def backward_reduce(grad_out, input, mean, invstd, weight, of_input, of_weight, of_bias):
        gradient = wide(grad_out)
        sums = gradient.sum(dims(gradient))
        moments = (gradient * (wide(input) - around(mean, input))).sum(dims(gradient))
        dtype = mean.dtype if weight is None else weight.dtype
        return (sums if of_input else None, moments if of_input else None, (moments * invstd).to(dtype) if of_weight else None,
                sums.to(dtype, copy=True) if of_bias else None)

    def backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
        count = count.sum().to(mean.dtype)
        scale = invstd if weight is None else invstd * wide(weight)
        moments = invstd.square() * sum_dy_xmu / count
        result = wide(grad_out) - around(sum_dy / count, input) - (wide(input) - around(mean, input)) * around(moments, input)
        return (result * around(scale, input)).to(input.dtype)

    provided.kernels(torch, {
        "batch_norm_stats": stats, "batch_norm_gather_stats": gather_of_one_count, "batch_norm_gather_stats_with_counts": gather, "batch_norm_elemt": elemt,
        "batch_norm_backward_reduce": backward_reduce, "batch_norm_backward_elemt": backward_elemt})
