"""Booleans as numbers. PyTorch 1.13 hands them to the operations that a mode calls as 0 and 1, so that torch.full(size, True) has
another type. Its functions for programs do not."""
import functools


class Call:
    """An operation that gets booleans as they are."""

    def __init__(self, func, plain, names):
        self.func, self.plain, self.names = func, plain, names
        self.places = [at for at, a in enumerate(func._schema.arguments) if a.name in names]

    def __getattr__(self, name):
        return getattr(self.func, name)

    def __str__(self):
        return str(self.func)

    def __call__(self, *args, **kwargs):
        for at in self.places:
            if at < len(args) and type(args[at]) is bool:
                return self.plain(*args, **kwargs)
        if kwargs and any(type(kwargs.get(name)) is bool for name in self.names):
            return self.plain(*args, **kwargs)
        return self.func(*args, **kwargs)


def call_of(torch, func):
    space, name = func._schema.name.split("::")
    names = [a.name for a in func._schema.arguments if "number" in str(a.type) or "Scalar" in str(a.type)]
    plain = getattr(torch._C._VariableFunctions, name, None) or getattr(torch._C._TensorBase, name, None)
    return Call(func, plain, names) if space == "aten" and names and plain else func


def calls(torch):
    """A function that returns what runs an operation."""
    if torch.ops.aten.full.default([], True).dtype is torch.bool:
        return lambda func: func
    return functools.partial(call_of, torch)
