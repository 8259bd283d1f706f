"""Asserts the type of the result of each operation that PyTorch's documentation lists for autocast on CUDA, in a session."""
import re
import sys
import warnings

import torch
from torch.nn import functional as F

warnings.simplefilter("ignore")
VERSION = tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", torch.__version__).groups())


def rand(*sizes):
    return torch.rand(*sizes, device="cuda")


def zeros(*sizes):
    return torch.zeros(*sizes, dtype=torch.long, device="cuda")


def layer(kind, *sizes):
    return kind(*sizes).cuda()


q, v, b3, image, kernel = rand(4, 4), rand(4), rand(2, 4, 4), rand(1, 4, 6, 6), rand(4, 4, 3, 3)
volume, kernel3 = rand(1, 2, 4, 4, 4), rand(2, 2, 3, 3, 3)
h = rand(4, 4).half() / 2 + 0.25  # where all functions have a value
one = torch.ones(4, device="cuda").half()
nn = torch.nn

LOWER = {  # float32 in, float16 out
    "matmul": lambda: q @ q, "addbmm": lambda: torch.addbmm(q, b3, b3), "addmm": lambda: torch.addmm(q, q, q), "addmv": lambda: torch.addmv(v, q, v),
    "addr": lambda: torch.addr(q, v, v), "baddbmm": lambda: torch.baddbmm(b3, b3, b3), "bmm": lambda: torch.bmm(b3, b3),
    "chain_matmul": lambda: torch.chain_matmul(q, q, q), "multi_dot": lambda: torch.linalg.multi_dot([q, q, q]),
    "conv1d": lambda: F.conv1d(b3, rand(4, 4, 3)), "conv2d": lambda: F.conv2d(image, kernel), "conv3d": lambda: F.conv3d(volume, kernel3),
    "conv_transpose1d": lambda: F.conv_transpose1d(b3, rand(4, 4, 3)), "conv_transpose2d": lambda: F.conv_transpose2d(image, kernel),
    "conv_transpose3d": lambda: F.conv_transpose3d(volume, kernel3), "linear": lambda: F.linear(q, q), "mm": lambda: torch.mm(q, q),
    "mv": lambda: torch.mv(q, v), "prelu": lambda: layer(nn.PReLU)(q), "einsum": lambda: torch.einsum("ij,jk->ik", q, q),
    "GRUCell": lambda: layer(nn.GRUCell, 4, 4)(q), "LSTMCell": lambda: layer(nn.LSTMCell, 4, 4)(q)[0], "RNNCell": lambda: layer(nn.RNNCell, 4, 4)(q),
    "LSTM": lambda: layer(nn.LSTM, 4, 4)(b3)[0], "state of LSTM": lambda: layer(nn.LSTM, 4, 4)(b3)[1][1], "GRU": lambda: layer(nn.GRU, 4, 4)(b3)[0],
    "RNN": lambda: layer(nn.RNN, 4, 4)(b3)[0], "einsum of one": lambda: torch.einsum("ij->i", q), "conv_tbc": lambda: torch.conv_tbc(b3, b3, v),
    "_convolution": lambda: torch.convolution(image, kernel, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1), "MultiheadAttention": lambda: layer(nn.MultiheadAttention, 4, 2)(b3, b3, b3)[0],
}
if hasattr(F, "scaled_dot_product_attention"):
    LOWER["scaled_dot_product_attention"] = lambda: F.scaled_dot_product_attention(b3, b3, b3)

WIDER = {  # float16 in, float32 out
    "__pow__": lambda: h**2, "__rpow__": lambda: 2**h, "__rtruediv__": lambda: 1 / h, "acos": lambda: h.acos(), "asin": lambda: h.asin(),
    "binary_cross_entropy_with_logits": lambda: F.binary_cross_entropy_with_logits(h, h), "cosh": lambda: h.cosh(),
    "cosine_embedding_loss": lambda: F.cosine_embedding_loss(h, h, one), "cdist": lambda: torch.cdist(h, h),
    "cosine_similarity": lambda: F.cosine_similarity(h, h), "cross_entropy": lambda: F.cross_entropy(h, zeros(4)), "cumprod": lambda: h.cumprod(0),
    "cumsum": lambda: h.cumsum(0), "dist": lambda: torch.dist(h, h * 2), "erfinv": lambda: h.erfinv(), "exp": lambda: h.exp(), "expm1": lambda: h.expm1(),
    "group_norm": lambda: F.group_norm(h, 2), "hinge_embedding_loss": lambda: F.hinge_embedding_loss(h, h),
    "kl_div": lambda: F.kl_div(h, h, reduction="sum"), "l1_loss": lambda: F.l1_loss(h, h * 2), "layer_norm": lambda: F.layer_norm(h, (4,)),
    "log": lambda: h.log(), "log10": lambda: h.log10(), "log_softmax": lambda: F.log_softmax(h, 0), "log1p": lambda: h.log1p(), "log2": lambda: h.log2(),
    "margin_ranking_loss": lambda: F.margin_ranking_loss(one, one, one), "mse_loss": lambda: F.mse_loss(h, h * 2),
    "multilabel_margin_loss": lambda: F.multilabel_margin_loss(h, zeros(4, 4)), "multi_margin_loss": lambda: F.multi_margin_loss(h, zeros(4)),
    "nll_loss": lambda: F.nll_loss(h, zeros(4)), "norm": lambda: h.norm(), "normalize": lambda: F.normalize(h), "pdist": lambda: torch.pdist(h),
    "poisson_nll_loss": lambda: F.poisson_nll_loss(h, h), "pow": lambda: torch.pow(h, h), "prod": lambda: h.prod(), "reciprocal": lambda: h.reciprocal(),
    "rsqrt": lambda: h.rsqrt(), "sinh": lambda: h.sinh(), "smooth_l1_loss": lambda: F.smooth_l1_loss(h, h * 2),
    "soft_margin_loss": lambda: F.soft_margin_loss(h, h), "softmax": lambda: F.softmax(h, 0), "softmin": lambda: F.softmin(h, 0),
    "softplus": lambda: F.softplus(h), "sum": lambda: h.sum(), "renorm": lambda: h.renorm(2, 0, 1.0), "tan": lambda: h.tan(),
    "triplet_margin_loss": lambda: F.triplet_margin_loss(h, h * 2, h * 3),
}
RESIZED = {  # in the lists of some versions
    "interpolate": lambda: F.interpolate(image.half(), scale_factor=2, mode="bilinear"),
    "interpolate, nearest": lambda: F.interpolate(image.half(), scale_factor=2), "interpolate, 1d": lambda: F.interpolate(b3.half(), scale_factor=2, mode="linear"),
    "interpolate, 3d": lambda: F.interpolate(volume.half(), scale_factor=2, mode="trilinear"),
    "interpolate, bicubic": lambda: F.interpolate(image.half(), scale_factor=2, mode="bicubic"), "Upsample": lambda: nn.Upsample(scale_factor=2)(image.half()),
}
NORMS = {"norm": WIDER.pop("norm"), "normalize": WIDER.pop("normalize"), "vector_norm": lambda: torch.linalg.vector_norm(h)}
if VERSION < (2, 0):  # torch.norm is not torch.linalg.vector_norm
    WIDER.update(norm=NORMS.pop("norm"), normalize=NORMS.pop("normalize"))

WIDEST = {  # float16 and float32 in, float32 out
    "addcdiv": lambda: torch.addcdiv(q, h, h), "addcmul": lambda: torch.addcmul(h, q, h), "atan2": lambda: torch.atan2(h, q),
    "bilinear": lambda: F.bilinear(h, q, rand(4, 4, 4).half()), "cross": lambda: torch.cross(h[:, :3], q[:, :3], dim=1), "dot": lambda: torch.dot(h[0], q[0]),
    "grid_sample": lambda: F.grid_sample(image.half(), rand(1, 2, 2, 2)), "index_put": lambda: q.clone().index_put((zeros(1),), h[0:1]),
    "scatter_add": lambda: q.scatter_add(0, zeros(4, 4), h), "tensordot": lambda: torch.tensordot(h, q, 1), "cat": lambda: torch.cat([h, q]),
    "stack": lambda: torch.stack([h, q]),
}
SAME = {  # in no list: float16 in, float16 out
    "relu": lambda: h.relu(), "add": lambda: h + h, "mean": lambda: h.mean(), "tanh": lambda: h.tanh(), "gelu": lambda: F.gelu(h), "silu": lambda: F.silu(h),
    "trace": lambda: h.trace(), "sqrt": lambda: h.sqrt(), "std": lambda: h.std(), "avg_pool2d": lambda: F.avg_pool2d(image.half(), 2),
    "avg_pool3d": lambda: F.avg_pool3d(volume.half(), 2), "max_pool3d": lambda: F.max_pool3d(volume.half(), 2),
    "adaptive_avg_pool3d": lambda: F.adaptive_avg_pool3d(volume.half(), 2), "max_pool2d": lambda: F.max_pool2d(image.half(), 2),
    "batch_norm": lambda: layer(nn.BatchNorm2d, 4)(image.half()), "instance_norm": lambda: F.instance_norm(image.half()),
    "dropout": lambda: F.dropout(h),
    "reflection_pad1d": lambda: F.pad(b3.half(), (1, 1), mode="reflect"), "replication_pad2d": lambda: F.pad(image.half(), (1, 1, 1, 1), mode="replicate"),
    "index_copy": lambda: h.index_copy(0, zeros(1), h[:1]), "grid_sample": lambda: F.grid_sample(image.half(), rand(1, 2, 2, 2).half()),
    "cat": lambda: torch.cat([h, h]),
}
known = torch._C._dispatch_has_kernel_for_dispatch_key
for name, operations in (("aten::upsample_bilinear2d", RESIZED), ("aten::linalg_vector_norm", NORMS)):
    (WIDER if known(name, "AutocastCUDA") else SAME).update(operations)

count, wrong = 0, []
for operations, wanted in ((LOWER, torch.float16), (WIDER, torch.float32), (WIDEST, torch.float32), (SAME, torch.float16)):
    for name, operation in operations.items():
        count += 1
        with torch.cuda.amp.autocast():
            result = operation()
        if result.dtype is not wanted or not result.is_cuda:
            wrong.append("%s: %s on %s, want %s" % (name, result.dtype, result.device, wanted))
        with torch.cuda.amp.autocast(enabled=False):
            assert (q @ q).dtype is torch.float32
for name, operation in {"inv": lambda: torch.linalg.inv(h), "cholesky": lambda: torch.linalg.cholesky(h), "quantile": lambda: h.quantile(0.5)}.items():
    count += 1
    try:
        with torch.cuda.amp.autocast():
            wrong.append("%s: %s, want an error" % (name, operation().dtype))
    except RuntimeError:
        pass
# What PyTorch's autocast for CUDA changes is changed here, except for kernels of CUDA alone and dimensions with names.
CUDA_ALONE = {"cudnn_convolution", "cudnn_convolution_transpose", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "_cudnn_rnn", "_scaled_dot_product_flash_attention"}
missing = [name[6:] for name in torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA") if not known(name, "AutocastCPU")]
wrong += [name + ": autocast leaves it alone" for name in missing if name not in CUDA_ALONE and "ame" not in name.partition(".")[2]]
print("\n".join(wrong + ["%d operations, %d of them with another type" % (count, len(wrong))]))
sys.exit(1 if wrong else 0)
