"""Devices that a program names by their number alone: torch.device(0), module.to(0). From PyTorch 2.6 on its C++ code asks for the
accelerator of the build, and a CPU build has none."""


def install(torch):
    base = torch.device
    try:
        base(0)
        return
    except RuntimeError:
        pass

    def named(value):
        return base("cuda", value) if isinstance(value, int) and not isinstance(value, bool) else value

    class Kind(type):
        """torch.device itself cannot be changed, and has no subclasses: what this class makes are its objects."""

        def __call__(cls, *args, **kwargs):
            if len(args) == 1 and not kwargs:
                return base(named(args[0]))
            if "device" in kwargs:
                kwargs["device"] = named(kwargs["device"])
            return base(*args, **kwargs)

        def __instancecheck__(cls, other):
            return isinstance(other, base)

        def __subclasscheck__(cls, other):
            return other is base or other is cls

        def __eq__(cls, other):
            return other is base or other is cls

        def __hash__(cls):
            return hash(base)

    torch.device = Kind("device", (), {"__module__": "torch", "__doc__": base.__doc__})
    scripts(torch, base)
    parse = torch._C._nn._parse_to

    def parse_to(*args, **kwargs):
        if "device" in kwargs:
            kwargs["device"] = named(kwargs["device"])
        return parse(*[named(arg) for arg in args[:1]], *args[1:], **kwargs)

    torch._C._nn._parse_to = parse_to


def scripts(torch, base):
    """TorchScript knows the type by its identity, also in code that PyTorch read before."""
    torch.jit._builtins._register_builtin(torch.device, "aten::device")
    annotations = torch.jit.annotations
    original = annotations.try_ann_to_type

    def try_ann_to_type(ann, *args, **kwargs):
        return original(torch.device if ann is base else ann, *args, **kwargs)

    annotations.try_ann_to_type = try_ann_to_type
