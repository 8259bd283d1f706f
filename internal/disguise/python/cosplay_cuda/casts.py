"""What CUDA's autocast does to operations, where the CPU's does otherwise: the lists of PyTorch's documentation, by the names
and overloads of operators. Names that a version lacks are left out."""

# Computed in float32.
FLOAT32 = (
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh", "tan",
    "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "native_layer_norm", "native_group_norm", "_softmax", "_log_softmax", "layer_norm", "group_norm", "l1_loss",
    "smooth_l1_loss", "huber_loss", "mse_loss", "nll_loss", "nll_loss2d", "soft_margin_loss", "binary_cross_entropy_with_logits", "kl_div",
    "norm.Scalar", "norm.ScalarOpt_dim", "frobenius_norm", "frobenius_norm.dim", "nuclear_norm", "nuclear_norm.dim", "logsumexp", "dist", "pdist",
    "renorm", "cosine_similarity",
)
# Their operand stays as it is, and the result is asked for in float32.
INTO_FLOAT32 = ("cumprod", "cumsum", "prod", "prod.dim_int", "sum", "sum.dim_IntList", "softmax.int", "log_softmax.int")
# Computed in float32 by the versions whose autocast for CUDA has them.
FLOAT32_SINCE = (
    "linalg_vector_norm", "linalg_matrix_norm", "linalg_matrix_norm.str_ord", "rms_norm", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d",
    "upsample_bilinear2d", "_upsample_bilinear2d_aa", "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bicubic2d_aa",
)
# Computed in the lower precision, which the CPU does not do.
LOWER = (
    "_convolution", "convolution", "einsum", "chain_matmul", "linalg_multi_dot", "addmv", "addr", "mv", "prelu", "lstm.input", "lstm.data", "gru.input", "gru.data", "rnn_tanh.input", "rnn_tanh.data", "rnn_relu.input",
    "rnn_relu.data", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
)
# Computed in the lower precision by both. Old CPU builds know bfloat16 alone, so these are replaced there.
LOWER_TOO = (
    "_convolution.deprecated", "conv_tbc", "conv1d", "conv2d", "conv3d", "linalg_vecdot", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input", "mm", "bmm", "addmm", "addbmm",
    "baddbmm", "linear", "matmul",
)
# Computed in the widest type of their arguments.
PROMOTE = (
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "linalg_cross", "dot", "vdot", "grid_sampler", "index_put", "scatter_add", "tensordot", "cat",
    "stack",
)
# Computed in the type of their arguments, where the CPU takes float32.
AS_IS = (
    "avg_pool3d", "max_pool3d", "max_unpool2d", "max_unpool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d", "fractional_max_pool2d",
    "fractional_max_pool3d", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d", "replication_pad3d", "trace",
    "view_as_complex", "index_copy",
    # CUDA has no kernels of these for the lower precision, and raises an error.
    "cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "inverse", "linalg_cholesky", "linalg_cholesky_ex", "linalg_eig", "linalg_eigh",
    "linalg_eigvals", "linalg_eigvalsh", "linalg_householder_product", "linalg_inv", "linalg_inv_ex", "linalg_lstsq", "linalg_qr", "linalg_solve",
    "linalg_svd", "linalg_svdvals", "linalg_tensorinv", "linalg_tensorsolve", "lu_solve", "nanquantile", "nanquantile.scalar", "orgqr", "ormqr",
    "pinverse", "polar", "qr", "quantile", "quantile.scalar", "svd", "symeig", "triangular_solve",
)
# Of several operations, each of which is cast as it is. The CPU computes all in float32.
THROUGH = ("cross_entropy_loss",)
# What the CPU promotes to the widest type, outside a region of CUDA.
CPU_PROMOTES = ("cat", "stack", "index_copy")
# An error.
UNSAFE = ("binary_cross_entropy",)
UNSAFE_TEXT = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)
