"""Operations that GPUs compute for types for which the CPU refuses them, by operations that the CPU has."""


def substitutes(torch, version):
    """Functions of such an operation and its arguments, by the operation's name. They run inside a session's mode."""
    aten = torch.ops.aten

    def nansum(func, args, kwargs):
        parts = torch.view_as_real(args[0].resolve_conj()).clone()
        parts[parts.isnan().any(-1)] = 0
        of = aten.sum.IntList_out if "out" in kwargs else aten.sum.dim_IntList
        return of, (torch.view_as_complex(parts),) + (tuple(args[1:]) or (None,)), kwargs

    def histc(func, args, kwargs):
        kind = args[0].dtype
        counts = aten.histc.default(args[0].double(), *args[1:], **{name: value for name, value in kwargs.items() if name != "out"}).to(kind)
        return (aten.copy_.default, (kwargs["out"].resize_(counts.shape), counts), {}) if "out" in kwargs else (aten.alias.default, (counts,), {})

    all = {"histc": histc}
    if version >= (2, 6):
        all["nansum"] = nansum  # of complex numbers
    return all
