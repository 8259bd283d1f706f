"""float16 and bfloat16. A GPU computes them in float32 and rounds the results. The CPU lacks some operations for them, and sums
up in their own precision in others, where a sum overflows or stops growing. These run in float32 here, and are rounded."""
from . import errors, lacking

# The CPU sums these up in the precision of their operands before PyTorch 2.6.
REDUCTIONS = frozenset((
    "mean", "norm", "linalg_vector_norm", "_foreach_norm", "prod", "dist", "cdist", "_cdist_forward", "renorm", "mse_loss", "smooth_l1_loss", "huber_loss",
    "binary_cross_entropy", "native_group_norm", "native_group_norm_backward", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "trace",
))
# Before PyTorch 2.6 the CPU rounds the number of these to the precision of the tensor.
SCALED = frozenset(("add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"))
# GPUs return the statistics of these in float32. The CPU does so only if the weight is float32.
STATISTICS = frozenset(("native_layer_norm", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
                        "_batch_norm_with_update", "_batch_norm_no_update"))
WITH_STATISTICS = frozenset(("native_layer_norm_backward", "native_batch_norm_backward", "batch_norm_backward"))
# GPUs have no kernel of these for low precisions, like the CPU.
FULL_ONLY = frozenset((
    "cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "linalg_cholesky_ex", "linalg_eig", "linalg_eigvals", "linalg_eigh", "linalg_householder_product",
    "linalg_inv_ex", "linalg_ldl_factor_ex", "linalg_ldl_solve", "linalg_lstsq", "linalg_lu", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_qr",
    "linalg_solve_triangular", "lu_solve", "orgqr", "ormqr", "polar", "symeig", "triangular_solve", "_linalg_det", "_linalg_eigh", "_linalg_eigvals",
    "_linalg_slogdet", "_linalg_solve_ex", "_linalg_svd",
))
# What the CPU says of operations that it lacks for a type.
NAMES = ("Half", "half", "BFloat16")
REFUSALS = ("not implemented", "not supported", "Unsupported dtype", "does not support")
RUNNING = ("running_mean", "running_var")  # which a batch norm updates, though not all of its schemas say so


class Halves:
    def __init__(self, torch):
        self.Tensor, self.dtype, self.to, self.old = torch.Tensor, torch.dtype, torch._C._TensorBase.to, errors.version(torch) < (2, 6)
        self.wide = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
        of_half = {torch.float32: torch.float16, torch.complex64: torch.complex32}
        self.substitutes = lacking.substitutes(torch, errors.version(torch))
        self.rounded = {torch.float16: of_half, torch.complex32: of_half, torch.bfloat16: {torch.float32: torch.bfloat16}}

    def rule(self, func):
        """A function that runs an operation as a GPU does; None if the CPU does so."""
        space, name = func._schema.name.split("::")
        if space != "aten":
            return None
        if name in STATISTICS or name in WITH_STATISTICS:
            return self.normalising(func, [a.name for a in func._schema.arguments].index("weight"), name in STATISTICS)
        if self.old and name in REDUCTIONS:
            return lambda args, kwargs: self.run(func, args, kwargs, promotes=True)
        if self.old and name in SCALED and func._overloadname in ("Tensor", "Scalar"):
            return self.scaling(func)
        return None

    def scaling(self, func):
        Tensor = self.Tensor

        def run(args, kwargs):
            first, other = args[:2]
            if not isinstance(first, Tensor) or first.dtype not in self.wide or isinstance(other, Tensor) and (other.dim() or not first.dim()):
                return func(*args, **kwargs)
            return self.run(func, args, kwargs)

        return run

    def normalising(self, func, place, forward):
        def run(args, kwargs):
            weight = args[place] if len(args) > place else kwargs.get("weight")
            if weight is not None and weight.dtype not in self.wide:
                return func(*args, **kwargs)
            return self.run(func, args, kwargs, first_alone=forward)

        return run

    def missing(self, func, args, kwargs, error, on_gpu):
        """Runs an operation that the CPU has refused. Raises its error if neither another precision nor another operation is a
        help."""
        text = str(error)
        substitute = self.substitutes.get(func._schema.name.partition("::")[2])
        if on_gpu and substitute is not None and any(word in text for word in REFUSALS):
            return self.run(*substitute(func, args, kwargs))
        if func._schema.name.partition("::")[2] in FULL_ONLY:
            raise error
        unknown = any(name in text for name in NAMES) and any(word in text for word in REFUSALS)
        if not unknown and "could not create a primitive" not in text or not self.has_low(args, kwargs):  # of oneDNN
            raise error
        return self.run(func, args, kwargs)

    def has_low(self, args, kwargs):
        changed, given = [], [*args, *kwargs.values()]
        self.widen(given, changed)
        return bool(changed or self.asked(given))

    def asked(self, given):
        """The low precisions that the program asks a result in."""
        return [value for value in given if isinstance(value, self.dtype) and value in self.wide]

    def run(self, func, args, kwargs, first_alone=False, promotes=False):
        """Runs an operation on operands in float32, and rounds its results, or the first one alone. promotes: the operation takes
        operands of several types, and its results have the type that PyTorch promotes them to."""
        changed = []
        wide_args, wide_kwargs = self.widen(list(args), changed), {name: self.widen(value, changed) for name, value in kwargs.items()}
        asked = self.asked([*args, *kwargs.values()])
        if not changed and not asked:
            return func(*args, **kwargs)
        result = func(*wide_args, **wide_kwargs)
        written = {id(tensor) for tensor in self.written(func, args, kwargs)}
        for before, part in changed:
            if id(before) in written:
                before.copy_(part)
        originals = {id(part): before for before, part in changed}
        if id(result) in originals:
            return originals[id(result)]
        if any(isinstance(value, self.dtype) and value not in self.wide for value in (*args, *kwargs.values())):
            return result  # of the type that the program asks for
        to = self.rounded[asked[0] if asked else changed[0][0].dtype]
        if promotes and not asked:
            scalars = not any(before.dim() for before, part in changed)
            if any(isinstance(arg, self.Tensor) and arg.dtype in to and (scalars or arg.dim()) for arg in args):
                return result
        return (self.narrow(result[0], to),) + tuple(result[1:]) if first_alone else self.narrow(result, to)

    def written(self, func, args, kwargs):
        """The tensors that an operation changes."""
        for at, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write or argument.name in RUNNING:
                value = args[at] if at < len(args) else kwargs.get(argument.name)
                for tensor in value if type(value) in (list, tuple) else (value,):
                    yield tensor

    def widen(self, value, changed):
        if isinstance(value, self.Tensor):
            wide = self.wide.get(value.dtype)
            if wide is None:
                return value
            changed.append((value, self.to(value, wide)))
            return changed[-1][1]
        if type(value) in (list, tuple):
            return type(value)([self.widen(part, changed) for part in value])
        return self.wide.get(value, value) if isinstance(value, self.dtype) else value

    def narrow(self, value, to):
        if isinstance(value, self.Tensor):
            return self.to(value, to[value.dtype]) if value.dtype in to else value
        if type(value) in (list, tuple):
            return type(value)([self.narrow(part, to) for part in value])
        return value
