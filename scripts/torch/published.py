"""Programs whose GPU memory others measured and published: published.py CASE [--as-2.1], of published.json. It prints what the session's GPU
shows, in bytes. The models have random weights, and the data has its shape only, so it runs with compute = "shapes"."""
import json
import os
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")
device = "cuda"


def show(*values):
    print(*values, flush=True)


def tokens(batch, length, vocabulary):
    return torch.randint(0, vocabulary, (batch, length)).to(device)


class Norm(nn.Module):
    """Layer normalization of single operations."""

    def __init__(self, width):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * ((x - mean) / torch.sqrt(variance + 1e-5)) + self.shift


class Gelu(nn.Module):
    """The approximation by tanh of single operations."""

    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(torch.sqrt(torch.tensor(2.0 / torch.pi)) * (x + 0.044715 * torch.pow(x, 3))))


class Heads(nn.Module):
    """Causal attention of single operations. Its mask is a buffer, or made in each call."""

    def __init__(self, width, heads, length, dropout, buffer):
        super().__init__()
        self.heads, self.depth = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out, self.dropout = nn.Linear(width, width), nn.Dropout(dropout)
        self.mask = None
        if buffer:
            self.register_buffer("kept", torch.triu(torch.ones(length, length), diagonal=1))

    def hidden(self, length):
        if hasattr(self, "kept"):
            return self.kept.bool()[:length, :length]
        return torch.triu(torch.ones(length, length, dtype=torch.bool, device=device), diagonal=1)

    def forward(self, x):
        batch, length, width = x.shape
        keys, queries, values = (part(x).view(batch, length, self.heads, self.depth).transpose(1, 2) for part in (self.key, self.query, self.value))
        scores = queries @ keys.transpose(2, 3)
        hidden = self.hidden(length)
        scores.masked_fill_(hidden, -torch.inf)
        weights = self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))
        return self.out((weights @ values).transpose(1, 2).reshape(batch, length, width))


class Fused(nn.Module):
    """The same by scaled_dot_product_attention."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.parts, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.parts(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, length, dropout, own, buffer, fused):
        super().__init__()
        norm, gelu = (Norm, Gelu()) if own else (nn.LayerNorm, nn.GELU(approximate="tanh"))
        self.attention = Fused(width, heads, dropout) if fused else Heads(width, heads, length, dropout, buffer)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), gelu, nn.Linear(4 * width, width))
        self.first, self.second, self.dropout = norm(width), norm(width), nn.Dropout(dropout)

    def forward(self, x):
        shortcut = x
        x = self.first(x)
        x = self.attention(x)
        x = self.dropout(x)
        x = x + shortcut
        shortcut = x
        x = self.second(x)
        x = self.layers(x)
        x = self.dropout(x)
        return x + shortcut


class Gpt(nn.Module):
    def __init__(self, own, buffer, fused, width=768, heads=12, layers=12, length=1024, vocabulary=50257, dropout=0.1):
        super().__init__()
        self.tokens, self.positions, self.dropout = nn.Embedding(vocabulary, width), nn.Embedding(length, width), nn.Dropout(dropout)
        self.blocks = nn.Sequential(*[Block(width, heads, length, dropout, own, buffer, fused) for _ in range(layers)])
        self.norm, self.head = (Norm if own else nn.LayerNorm)(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, index):
        words = self.tokens(index)
        places = self.positions(torch.arange(index.shape[1], device=index.device))
        x = words + places
        x = self.dropout(x)
        x = self.blocks(x)
        x = self.norm(x)
        return self.head(x)


def gpt(own, buffer, fused, half, fused_optimizer, batch=8, length=1024, steps=4):
    """A training with an evaluation and a generated text in between, of which the memory at the end was measured."""
    model = Gpt(own, buffer, fused)
    model.to(device)
    if half:
        model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.1, **({"fused": True} if fused_optimizer else {}))

    def loss_of():
        x, y = tokens(batch, length, 50257), tokens(batch, length, 50257)
        logits = model(x)
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())

    model.train()
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        if step % 2 == 0:
            model.eval()
            with torch.no_grad():
                for _ in range(2):
                    loss_of().item()
            model.train()
    model.eval()
    index = tokens(1, 4, 50257)
    for _ in range(50):
        with torch.no_grad():
            logits = model(index)
        index = torch.cat((index, torch.argmax(logits[:, -1, :], dim=-1, keepdim=True)), dim=1)
    show(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())


def vit(precision, batch, accumulate=1, steps=4):
    """Fine-tuning of torchvision's ViT-L/16 with Adam, then its validation."""
    from torchvision.models import vit_l_16

    half = precision == "bf16-true"
    if half:
        torch.set_default_dtype(torch.bfloat16)
    model = vit_l_16(weights=None)
    model.heads.head = nn.Linear(1024, 10)
    torch.set_default_dtype(torch.float32)
    if half:
        model.to(torch.bfloat16)
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-5)
    scaler = torch.amp.GradScaler("cuda") if precision == "16-mixed" else None

    def predict():
        x, y = torch.rand(batch, 3, 224, 224).to(device), tokens(batch, 1, 10)[:, 0]
        with torch.autocast("cuda", torch.float16, enabled=scaler is not None):
            logits = model(x.bfloat16() if half else x)
        return logits.float() if half or scaler else logits, y

    for step in range(steps):
        model.train()
        logits, y = predict()
        loss = F.cross_entropy(logits, y) / accumulate
        if accumulate == 1:
            optimizer.zero_grad()
        (scaler.scale(loss) if scaler else loss).backward()
        if step % accumulate == 0:
            if scaler:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            if accumulate > 1:
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            torch.argmax(logits, 1)
    with torch.no_grad():
        for _ in range(2):
            torch.argmax(predict()[0], 1)
    show(torch.cuda.max_memory_reserved())


def llama(scale):
    """The largest memory of a forward and a backward pass, after a first one and with its gradients kept."""
    from transformers import LlamaConfig, LlamaModel

    width = 256
    model = LlamaModel(LlamaConfig(hidden_size=width, intermediate_size=int(width * 2.6875), num_hidden_layers=4 * scale, num_attention_heads=8,
                                   num_key_value_heads=8, vocab_size=1000, use_cache=False)).to(device)
    ids = tokens(2, 128 * scale, 1000)

    def run():
        model(input_ids=ids).last_hidden_state.sum().backward()

    run()
    model.zero_grad(set_to_none=False)
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    show(before, torch.cuda.max_memory_allocated())


def linear(width, shape, bias=False):
    model = nn.Linear(width, width, bias=bias).to(device)
    x = torch.rand(*shape).to(device)
    y = model(x)
    show(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
    return y


def leftover():
    def use():
        nn.Linear(1, 1, device=device)(torch.randn(1, 1, device=device))

    use()
    show(torch.cuda.memory_allocated())


def two_layers(length):
    model = nn.Sequential(nn.Linear(1024, 1024, bias=False), nn.Linear(1024, 1024, bias=False)).to(device)
    x = torch.rand(4, length, 1024).to(device)
    y = model(x).sum()
    first = torch.cuda.memory_allocated()
    y.backward()
    show(first, torch.cuda.memory_allocated())


def softmax(*shape):
    x = torch.rand(shape, dtype=torch.bfloat16, device=device, requires_grad=True)
    found = [torch.cuda.memory_allocated()]
    x = F.softmax(x, dim=-1)
    loss = torch.mean(x)
    found.append(torch.cuda.memory_allocated())
    loss.backward()
    show(*found, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())


def as_2_1():
    """Two things that PyTorch 2.1 did in another way: attention in half precision laid its result out by sequence, whatever the
    layout of its operands, and Adam kept a copy of the denominators of all parameters."""
    attend, add, divide, kept = F.scaled_dot_product_attention, torch._foreach_add_, torch._foreach_addcdiv_, []

    def by_sequence(query, *args, **kwargs):
        result = attend(query, *args, **kwargs)
        return result if query.dtype == torch.float32 else result.transpose(1, 2).contiguous().transpose(1, 2)

    def add_number(tensors, *args, **kwargs):
        if len(args) == 1 and isinstance(args[0], float):
            kept.append(torch._foreach_add(tensors, args[0]))
        else:
            add(tensors, *args, **kwargs)

    def add_quotients(*args):
        divide(*args)
        kept.clear()

    F.scaled_dot_product_attention, torch._foreach_add_, torch._foreach_addcdiv_ = by_sequence, add_number, add_quotients


def main():
    cases = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "published.json")))
    case = next(case for case in cases if case["name"] == sys.argv[1])
    if "--as-2.1" in sys.argv:
        as_2_1()
    globals()[case["program"]](*case.get("arguments", ()))


main()
