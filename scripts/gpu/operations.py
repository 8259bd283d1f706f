"""The memory of single operations, on a GPU or in a session of a simulated host: operations.py [large|listed [N [FIRST]]].
`large` runs operations on tensors of megabytes, `listed` those of PyTorch's own list, OpInfo, with its small inputs, every N-th from the
first one. Each line is JSON: what was run, and in bytes what is allocated after the operation, and its peak, both above what was allocated
before; the same of its backward pass. It is the second run of each, so that handles and workspaces which stay are there."""
import gc
import itertools
import json
import sys
import types
import unittest
import warnings

try:
    import expecttest  # noqa: F401 PyTorch's list imports it, and nothing here uses it
except ImportError:
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase, sys.modules["expecttest"].ACCEPT = unittest.TestCase, False

import torch
from torch.nn import functional as F

warnings.simplefilter("ignore")
SAMPLES = 4  # inputs of each operator and type
TYPES = ("float32", "float16", "int64", "complex64", "bool")


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def above(before):
    return [torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before]


def used(call):
    """What a call takes, and its backward pass where it has one."""
    torch.manual_seed(1)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = call()
    found = {"forward": above(before)}
    derived = [t for t in tensors(result) if t.requires_grad and t.layout is torch.strided]
    if derived:
        gradients = [torch.ones_like(t) for t in derived]
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        torch.autograd.backward(derived, gradients)
        found["backward"] = above(before)
    return found


def report(name, call, leaves):
    try:
        for _ in range(2):
            for leaf in leaves:
                leaf.grad = None
            found = used(call)
    except Exception as error:
        found = {"error": "%s: %s" % (type(error).__name__, (str(error).splitlines() or [""])[0][:120])}
    print(json.dumps(dict(found, case=name)), flush=True)


def shapes(value):
    return ",".join("x".join(map(str, t.shape)) for t in tensors(value))


def listed(step=1, first=0):
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db[int(first)::int(step)]:
        full = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        for name in [name for name in TYPES if getattr(torch, name) in op.supported_dtypes("cuda")][:2]:
            gradients = op.supports_autograd and getattr(torch, name) in op.supported_backward_dtypes("cuda")
            try:
                torch.manual_seed(1)
                samples = list(itertools.islice(op.sample_inputs("cuda", getattr(torch, name), requires_grad=gradients), SAMPLES))
            except Exception:
                continue
            for number, sample in enumerate(samples):
                given = (sample.input, sample.args, sample.kwargs)
                leaves = [t for t in tensors(given) if t.is_leaf and t.requires_grad]
                report("%s %s %d %s" % (full, name, number, shapes(given)), lambda: op(sample.input, *sample.args, **sample.kwargs), leaves)
        gc.collect()


def large_cases(dtype):
    """Names and calls, each with the leaves whose gradients it makes. The tensors have 1 Mi numbers; `positive` ones are symmetric
    and positive definite."""
    def make(*shape):
        return torch.rand(shape).to("cuda", dtype).requires_grad_()

    n = 1024
    square, other, vector = make(n, n), make(n, n), make(n)
    flat, batch = make(n * n), make(16, 256, 256)
    picture, kernel, wide = make(8, 32, 64, 64), make(64, 32, 3, 3), make(4, 64, 4096)
    one, cube = make(8, 64, 2048), make(2, 8, 64, 64, 16)
    indices = torch.randint(0, n, (n, n)).to("cuda")
    line = torch.randint(0, n, (n * n,)).to("cuda")
    few = torch.randint(0, n, (n,)).to("cuda")
    bits = (torch.rand(n, n) > 0.5).to("cuda")
    table = make(n, 256)
    plain = square.detach()
    leaves = (square, other, vector, flat, batch, picture, kernel, wide, one, cube, table)
    calls = dict(
        add=lambda: square + other, add_row=lambda: square + vector, mul=lambda: square * other, exp=lambda: square.exp(), pow=lambda: square ** 3,
        where=lambda: torch.where(bits, square, other), clamp=lambda: square.clamp(0.2, 0.8), to_float64=lambda: square.double(),
        sum=lambda: square.sum(), sum_rows=lambda: square.sum(0), sum_columns=lambda: square.sum(1), sum_flat=lambda: flat.sum(), mean=lambda: square.mean(),
        prod=lambda: square.prod(1), prod_all=lambda: flat.prod(), var=lambda: square.var(), var_rows=lambda: square.var(0), std=lambda: square.std(1), norm=lambda: square.norm(),
        norm_columns=lambda: square.norm(dim=1), vector_norm=lambda: torch.linalg.vector_norm(square, 3), logsumexp=lambda: square.logsumexp(1),
        amax=lambda: square.amax(1), max=lambda: square.max(), max_columns=lambda: square.max(1), argmax=lambda: square.argmax(1), argmax_all=lambda: square.argmax(),
        all=lambda: bits.all(), any=lambda: bits.any(1), count_nonzero=lambda: plain.count_nonzero(), nansum=lambda: square.nansum(),
        cumsum=lambda: square.cumsum(1), cumsum_rows=lambda: square.cumsum(0), cumsum_flat=lambda: flat.cumsum(0), cumprod=lambda: square.cumprod(1),
        cummax=lambda: square.cummax(1), logcumsumexp=lambda: square.logcumsumexp(1),
        sort=lambda: square.sort(1), sort_rows=lambda: square.sort(0), sort_flat=lambda: flat.sort(), argsort=lambda: square.argsort(1), stable=lambda: flat.sort(stable=True),
        topk=lambda: square.topk(10), topk_flat=lambda: flat.topk(100), topk_rows=lambda: square.topk(10, 0), kthvalue=lambda: square.kthvalue(10), median=lambda: square.median(), median_rows=lambda: square.median(1),
        mode=lambda: torch.mode(plain[:64]), quantile=lambda: square.float().quantile(0.5, 1), unique=lambda: line.unique(), unique_inverse=lambda: line.unique(return_inverse=True, return_counts=True),
        unique_consecutive=lambda: line.unique_consecutive(), nonzero=lambda: bits.nonzero(), masked_select=lambda: square.masked_select(bits),
        index_mask=lambda: square[bits], masked_fill=lambda: square.masked_fill(bits, 0), histc=lambda: plain.float().histc(100), bincount=lambda: line.bincount(),
        searchsorted=lambda: torch.searchsorted(vector.detach().sort()[0], plain), bucketize=lambda: torch.bucketize(plain, vector.detach()), isin=lambda: torch.isin(line, few),
        gather=lambda: square.gather(1, indices), take=lambda: square.take(indices), index_select=lambda: square.index_select(0, few), index=lambda: square[few],
        index_two=lambda: square[few, few], index_columns=lambda: square[:, few], scatter=lambda: square.scatter(1, indices, other), scatter_add=lambda: square.scatter_add(1, indices, other),
        index_add=lambda: square.index_add(0, few, other), index_copy=lambda: square.index_copy(0, few, other), index_put=lambda: square.index_put((few,), other),
        index_put_accumulate=lambda: square.index_put((few,), other, accumulate=True), put=lambda: plain.put(indices, other.detach(), accumulate=True),
        take_along_dim=lambda: square.take_along_dim(indices, 1), repeat_interleave=lambda: square.repeat_interleave(2, 0), repeat=lambda: square.repeat(2, 1),
        flip=lambda: square.flip(0), roll=lambda: square.roll(3, 0), rot90=lambda: square.rot90(), tril=lambda: square.tril(), cat=lambda: torch.cat((square, other)), stack=lambda: torch.stack((square, other)),
        contiguous=lambda: square.t().contiguous(), pad=lambda: F.pad(square, (1, 1)), expand_add=lambda: vector.expand(n, n) + other,
        matmul=lambda: square @ other, matmul_transposed=lambda: square.t() @ other, mv=lambda: square @ vector, dot=lambda: vector @ vector, outer=lambda: torch.outer(vector, vector), bmm=lambda: batch @ batch,
        linear=lambda: F.linear(square, other), linear_bias=lambda: F.linear(square, other, vector), einsum=lambda: torch.einsum("bij,bkj->bik", batch, batch), bilinear=lambda: F.bilinear(table[:64], table[:64], batch[:, :, :]),
        addmm=lambda: torch.addmm(square, square, other), baddbmm=lambda: torch.baddbmm(batch, batch, batch), cdist=lambda: torch.cdist(table, table), cosine=lambda: F.cosine_similarity(square, other), pdist=lambda: F.pdist(table.float()),
        normalize=lambda: F.normalize(square), pairwise=lambda: F.pairwise_distance(square, other),
        relu=lambda: F.relu(square), gelu=lambda: F.gelu(square), silu=lambda: F.silu(square), softplus=lambda: F.softplus(square), prelu=lambda: F.prelu(wide, wide[0, :, 0]), glu=lambda: F.glu(square), sigmoid=lambda: square.sigmoid(), tanh=lambda: square.tanh(), leaky=lambda: F.leaky_relu(square),
        softmax=lambda: square.softmax(1), softmax_rows=lambda: square.softmax(0), log_softmax=lambda: square.log_softmax(1), gumbel=lambda: F.gumbel_softmax(square), dropout=lambda: F.dropout(square), alpha_dropout=lambda: F.alpha_dropout(square), dropout2d=lambda: F.dropout2d(picture),
        layer_norm=lambda: F.layer_norm(square, (n,)), layer_norm_affine=lambda: F.layer_norm(square, (n,), vector, vector), rms_norm=lambda: F.rms_norm(square, (n,), vector), group_norm=lambda: F.group_norm(picture, 8), instance_norm=lambda: F.instance_norm(picture),
        batch_norm=lambda: F.batch_norm(picture, None, None, training=True), batch_norm_rows=lambda: F.batch_norm(square, None, None, training=True), local_norm=lambda: F.local_response_norm(picture, 3),
        conv2d=lambda: F.conv2d(picture, kernel, padding=1), conv2d_bias=lambda: F.conv2d(picture, kernel, vector[:64], padding=1), conv2d_stride=lambda: F.conv2d(picture, kernel, stride=2), conv_transpose=lambda: F.conv_transpose2d(picture, kernel.transpose(0, 1).contiguous()),
        depthwise=lambda: F.conv2d(picture, kernel[:32, :1].contiguous(), groups=32), grouped=lambda: F.conv2d(picture, kernel[:, :8].contiguous(), groups=4), conv1d=lambda: F.conv1d(one, kernel[:, :, 0].repeat(1, 2, 1)), conv3d=lambda: F.conv3d(cube, kernel[:8, :8, None]), conv1x1=lambda: F.conv2d(picture, kernel[:, :, :1, :1].contiguous()), dilated=lambda: F.conv2d(picture, kernel, dilation=2),
        max_pool=lambda: F.max_pool2d(picture, 2), avg_pool=lambda: F.avg_pool2d(picture, 2), adaptive_avg=lambda: F.adaptive_avg_pool2d(picture, 7), adaptive_max=lambda: F.adaptive_max_pool2d(picture, 7), max_pool1d=lambda: F.max_pool1d(one, 2), max_pool3d=lambda: F.max_pool3d(cube, 2), lp_pool=lambda: F.lp_pool2d(picture, 2, 2), fractional=lambda: F.fractional_max_pool2d(picture, 2, output_size=20),
        unfold=lambda: F.unfold(picture, 3), fold=lambda: F.fold(F.unfold(picture, 2, stride=2), (64, 64), 2, stride=2), nearest=lambda: F.interpolate(picture, scale_factor=2), bilinear_up=lambda: F.interpolate(picture, scale_factor=2, mode="bilinear"), bicubic=lambda: F.interpolate(picture, scale_factor=2, mode="bicubic"), grid_sample=lambda: F.grid_sample(picture, picture[:, :2].permute(0, 2, 3, 1).contiguous()), pixel_shuffle=lambda: F.pixel_shuffle(picture, 2), affine_grid=lambda: F.affine_grid(make(8, 2, 3), (8, 3, 64, 64)),
        cross_entropy=lambda: F.cross_entropy(square, few), cross_entropy_smooth=lambda: F.cross_entropy(square, few, label_smoothing=0.1), cross_entropy_probabilities=lambda: F.cross_entropy(square, other), nll=lambda: F.nll_loss(square, few), nll2d=lambda: F.nll_loss(picture, indices[:8].reshape(8, -1)[:, :1].expand(8, 4096).reshape(8, 64, 64) % 32), bce=lambda: F.binary_cross_entropy_with_logits(square, other.detach()), mse=lambda: F.mse_loss(square, other), l1=lambda: F.l1_loss(square, other), smooth_l1=lambda: F.smooth_l1_loss(square, other), huber=lambda: F.huber_loss(square, other), kl=lambda: F.kl_div(square, other), hinge=lambda: F.hinge_embedding_loss(square, other), triplet=lambda: F.triplet_margin_loss(square, other, other), margin=lambda: F.multi_margin_loss(square, few), multilabel=lambda: F.multilabel_margin_loss(square, indices), cosine_loss=lambda: F.cosine_embedding_loss(square, other, vector.detach().sign()),
        ctc=lambda: F.ctc_loss(square.float().reshape(64, 16, n).log_softmax(2), indices[:16, :20] + 1 - (indices[:16, :20] == n - 1).long(), [64] * 16, [20] * 16),
        embedding=lambda: F.embedding(few, table), embedding_many=lambda: F.embedding(indices, table), embedding_bag=lambda: F.embedding_bag(indices, table, mode="sum"), embedding_bag_max=lambda: F.embedding_bag(indices, table, mode="max"), embedding_bag_mean=lambda: F.embedding_bag(indices, table), embedding_frequency=lambda: F.embedding(few, table, scale_grad_by_freq=True), one_hot=lambda: F.one_hot(few),
        multinomial=lambda: plain.float().multinomial(10), multinomial_replaced=lambda: plain.float().multinomial(10, replacement=True), randperm=lambda: torch.randperm(n * n, device="cuda"), randperm_small=lambda: torch.randperm(n, device="cuda"), rand=lambda: torch.rand(n, n, device="cuda"), randn=lambda: torch.randn(n, n, device="cuda"), bernoulli=lambda: plain.bernoulli(), uniform=lambda: torch.empty(n, n, device="cuda").uniform_(), normal=lambda: torch.normal(plain.float(), plain.float()), exponential=lambda: torch.empty(n, n, device="cuda").exponential_(), poisson=lambda: plain.float().poisson(), arange=lambda: torch.arange(n * n, device="cuda"), linspace=lambda: torch.linspace(0, 1, n * n, device="cuda"),
        foreach_norm=lambda: torch._foreach_norm([square, other, vector]), foreach_add=lambda: torch._foreach_add([plain, other.detach()], 1.0), clip=lambda: torch.nn.utils.clip_grad_norm_([p for p in leaves if p.grad is not None], 1.0), isfinite=lambda: plain.isfinite().all(), allclose=lambda: torch.allclose(plain, plain), equal=lambda: torch.equal(plain, plain), isclose=lambda: torch.isclose(plain, other.detach()),
    )
    if dtype is torch.float32:
        positive = (plain @ plain.t() / n + torch.eye(n, device="cuda") * 2).requires_grad_()
        small = (batch.detach() @ batch.detach().transpose(1, 2) / 256 + torch.eye(256, device="cuda") * 2).requires_grad_()
        leaves += (positive, small)
        calls.update(
            cholesky=lambda: torch.linalg.cholesky(positive), cholesky_batch=lambda: torch.linalg.cholesky(small), inverse=lambda: torch.linalg.inv(positive), inverse_batch=lambda: torch.linalg.inv(small), solve=lambda: torch.linalg.solve(positive, other), det=lambda: torch.linalg.det(small), slogdet=lambda: torch.linalg.slogdet(positive), lu=lambda: torch.linalg.lu_factor(positive), qr=lambda: torch.linalg.qr(positive), qr_batch=lambda: torch.linalg.qr(small), svd=lambda: torch.linalg.svd(small[0]), svdvals=lambda: torch.linalg.svdvals(small[0]), eigh=lambda: torch.linalg.eigh(positive), eigh_batch=lambda: torch.linalg.eigh(small), pinv=lambda: torch.linalg.pinv(small[0]), lstsq=lambda: torch.linalg.lstsq(positive, other), triangular=lambda: torch.linalg.solve_triangular(positive, other, upper=True), matrix_exp=lambda: torch.linalg.matrix_exp(small), matrix_power=lambda: torch.linalg.matrix_power(positive, 3), matrix_rank=lambda: torch.linalg.matrix_rank(small[0]), cond=lambda: torch.linalg.cond(small[0]),
            fft=lambda: torch.fft.fft(square), rfft=lambda: torch.fft.rfft(square), irfft=lambda: torch.fft.irfft(torch.complex(square, other)), fft2=lambda: torch.fft.fft2(square), fftn=lambda: torch.fft.fftn(batch), stft=lambda: torch.stft(flat, 512, return_complex=True, window=torch.hann_window(512, device="cuda")),
        )
    return calls, leaves


def large():
    for name in ("float32", "float16", "bfloat16"):
        calls, leaves = large_cases(getattr(torch, name))
        for what, call in calls.items():
            report("%s %s" % (what, name), call, leaves)
            gc.collect()


def main(what="large", *numbers):
    a = torch.ones(4, 4, device="cuda", requires_grad=True)
    torch.nn.functional.linear(a, a, a[0]).sum().backward()  # what the first product of a thread takes stays
    print(json.dumps({"case": "version", "torch": torch.__version__, "gpu": torch.cuda.get_device_name()}), flush=True)
    {"large": large, "listed": listed}[what](*numbers)


main(*sys.argv[1:])
