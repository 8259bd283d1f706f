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
