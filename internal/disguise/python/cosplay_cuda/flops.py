"""Floating point operations of matrix products and convolutions, by the rules of torch.utils.flop_counter: a
multiplication and an addition are two, a bias counts nothing."""


def product(sizes):
    result = 1
    for size in sizes:
        result *= size
    return result


def mm(args, result):
    """[..., m, k] by [..., k, n]."""
    return 2 * args[0].numel() * args[1].size(-1)


def addmm(args, result):
    return 2 * args[1].numel() * args[2].size(-1)


def forward(x, weight, out, transposed):
    """Each point of the output, or of the input if transposed, meets the whole weight."""
    return 2 * x[0] * product((x if transposed else out)[2:]) * product(weight)


def convolution(args, result):
    x, weight, transposed = args[0].shape, args[1].shape, args[6]
    return forward(x, weight, result.shape, transposed)


def convolution_backward(args, result):
    """Each gradient takes as many as the way forward. That of a weight in groups is counted as if there were none."""
    out, x, weight, transposed, groups, wanted = args[0].shape, args[1].shape, args[2].shape, args[7], args[9], args[10]
    return forward(x, weight, out, transposed) * (bool(wanted[0]) + groups * bool(wanted[1]))


def least_of_convolution(args, result):
    """With the algorithm that multiplies least."""
    x, weight, transposed = args[0].shape, args[1].shape, args[6]
    return forward(x, weight, result.shape, transposed) / spared(weight[2:], args[3], args[5])


def least_of_gradients(args, result):
    out, x, weight, transposed, wanted = args[0].shape, args[1].shape, args[2].shape, args[7], args[10]
    return forward(x, weight, out, transposed) * (bool(wanted[0]) + bool(wanted[1])) / spared(weight[2:], args[4], args[6])


def spared(kernel, strides, dilations):
    """By what a fast algorithm divides the multiplications: Winograd's, with tiles of 4 by 4, for kernels of 3 or 5, and a Fourier transform for
    larger ones. None is known for strides."""
    if any(step != 1 for step in (*strides, *dilations)):
        return 1
    return product({1: 1, 3: 2, 5: 2.5}.get(size, size) for size in kernel)


def attention_products(query, key, value):
    """The products of queries and keys, and of scores and values."""
    scores = 2 * product(query.shape[:-1]) * key.shape[-2]
    return scores * query.shape[-1], scores * value.shape[-1]


def attention(args, result):
    return sum(attention_products(*args[:3]))


def attention_backward(args, result):
    """The scores again, the gradients of queries and of keys; and those of scores and of values."""
    first, second = attention_products(*args[1:4])
    return 3 * first + 2 * second


def recurrent(args, result):
    """One layer in one direction of an LSTM or GRU that PyTorch runs in one piece: (time, batch, features), then the weights."""
    x, of_input, of_state = args[0].shape, args[1].shape, args[2].shape
    return 2 * x[0] * x[1] * (product(of_input) + product(of_state))


def recurrent_backward(args, result):
    return 2 * recurrent(args, result)


RULES = {
    "mm": mm, "bmm": mm, "_scaled_mm": mm, "_int_mm": mm, "addmm": addmm, "addmm_": addmm, "_addmm_activation": addmm,
    "baddbmm": addmm, "baddbmm_": addmm,
    "convolution": convolution, "_convolution": convolution, "convolution_overrideable": convolution,
    "convolution_backward": convolution_backward,
    "_scaled_dot_product_flash_attention": attention, "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_scaled_dot_product_efficient_attention": attention, "_scaled_dot_product_cudnn_attention": attention,
    "_scaled_dot_product_flash_attention_backward": attention_backward, "_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
    "_scaled_dot_product_efficient_attention_backward": attention_backward, "_scaled_dot_product_cudnn_attention_backward": attention_backward,
    "mkldnn_rnn_layer": recurrent, "mkldnn_rnn_layer_backward": recurrent_backward,
}
LEAST = {"convolution": least_of_convolution, "_convolution": least_of_convolution, "convolution_overrideable": least_of_convolution,
         "convolution_backward": least_of_gradients}
FORMATS = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "complex64": "fp32", "complex128": "fp64"}


def format_of(torch, dtype, cudnn):
    """The number format in which a product is computed."""
    name = str(dtype)[6:]
    if name == "float32":
        try:
            return "tf32" if (torch._C._get_cudnn_allow_tf32() if cudnn else torch._C._get_cublas_allow_tf32()) else "fp32"
        except RuntimeError:  # the program uses settings that newer versions have in their place
            return "tf32"
    return FORMATS.get(name, "fp8" if name.startswith("float8") else name)
