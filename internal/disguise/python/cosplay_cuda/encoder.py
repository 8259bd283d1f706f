"""What nn.TransformerEncoderLayer and nn.MultiheadAttention take in inference, where PyTorch runs them as one operation: the
intermediate results of its stage that takes most. All of them are released when the operation ends."""
from . import sdpa

NAMES = ("_transformer_encoder_layer_fwd", "_native_multi_head_attention")


class Encoder:
    def __init__(self, torch, memory, attention, products):
        self.torch, self.memory, self.attention, self.products = torch, memory, attention, products

    def rule_of(self, func):
        space, name = func._schema.name.split("::")
        if space != "aten" or name not in NAMES:
            return None
        names = [a.name for a in func._schema.arguments]

        def book(index, args, kwargs, result):
            given = dict(zip(names, args), **(kwargs or {}))
            source = given.get("src", given.get("query"))
            if source.layout is not self.torch.strided or source.is_nested or not source.numel():
                return
            attended = self.attended(source, given)
            stages = [attended] if name == NAMES[1] else self.layer(source, given, attended)
            taken = [self.memory.workspace(index, size) for size in max(stages, key=sum)]
            self.products.take(index, True)
            del taken

        return book

    def attended(self, source, given):
        """The sizes beside the result of the attention: projections, and the weights if no kernel fuses them."""
        batch, length, width = source.size()
        heads = given.get("num_heads", given.get("num_head"))
        whole, weights = source.numel() * source.element_size(), batch * heads * length * length * source.element_size()
        if not given.get("need_weights", False) and given.get("mask") is None and width // heads % 8 == 0:
            parts = [source.view(batch, length, heads, width // heads).transpose(1, 2)] * 3
            case = self.attention.case(*parts, gradients=False)
            kind = case.kernel()
            if self.attention.version >= (2, 0) and kind not in (None, sdpa.MATH):
                sizes = sdpa.Sizes(case, kind)
                return [3 * whole, sizes.out] + sizes.kept
        return max([3 * whole, 3 * whole], [3 * whole, weights, weights], key=sum)

    def layer(self, source, given, attended):
        """The stages of a layer: attention, and the two linear layers."""
        whole = source.numel() * source.element_size()
        hidden = whole // source.size(-1) * given["ffn_weight_1"].size(0)
        first = [whole] if given["norm_first"] else []
        return [first + attended, first + [whole, hidden]]
