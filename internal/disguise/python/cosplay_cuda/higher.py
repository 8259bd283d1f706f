"""Operations that take functions, such as torch.cond. A mode without a rule for one of them stops it with an error about modes."""
import functools

from . import errors


def cond(mode, predicate, true, false, operands):
    with mode:
        return (true if predicate else false)(*operands)


RULES = {"cond": cond}


def install(torch, kind, devices):
    operators = getattr(torch._ops, "HigherOrderOperator", None)
    keys = getattr(torch._C, "DispatchKey", None)
    if operators is None or not hasattr(operators, "dispatch"):
        return
    dispatch = operators.dispatch

    def on_host(operator, name):
        """On tensors of the host the operation runs as everywhere; the mode is off meanwhile."""
        def run(mode, *args, **kwargs):
            leaves = torch.utils._pytree.tree_flatten((args, kwargs))[0]
            if any(isinstance(leaf, torch.Tensor) and devices.of(leaf) >= 0 for leaf in leaves):
                raise errors.unsupported("torch.ops.higher_order." + name, "call what it is made of, or run it on the CPU")
            return operator(*args, **kwargs)

        return run

    @functools.wraps(dispatch)
    def with_rule(self, dispatch_key, *args, **kwargs):
        table = getattr(self, "python_key_table", None)
        if dispatch_key == keys.Python and table is not None and kind not in table:
            name = getattr(self, "_name", str(self))
            table[kind] = RULES.get(name) or on_host(self, name)
        return dispatch(self, dispatch_key, *args, **kwargs)

    operators.dispatch = with_rule
