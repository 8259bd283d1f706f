"""Models whose memory is measured on a GPU, and in a session of a simulated host: models.py MODEL prints its figures as JSON, in bytes;
models.py --list prints the names. The models have random weights, and of the data only the shape matters, so all of them run with
compute = "shapes". A module that is missing gives exit code 3."""
import json
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
device = "cuda"
MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


def stage(figures, name):
    figures[name] = [torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()]


def tokens(count, *shape):
    return torch.randint(0, count, shape).to(device)


def train(net, optimizer, loss_of, steps=3, half=None, scaled=False):
    """The figures after the model is on the GPU, and after each part of the first and the last step."""
    figures = {}
    stage(figures, "model")
    scaler = torch.amp.GradScaler("cuda", init_scale=128) if scaled else None  # so low that no step is left out
    for step in range(steps):
        name = {0: "first ", steps - 1: "last "}.get(step)
        optimizer.zero_grad()
        with torch.autocast("cuda", half, enabled=half is not None):
            loss = loss_of()
        if name:
            stage(figures, name + "forward")
        (scaler.scale(loss) if scaler else loss).backward()
        if name:
            stage(figures, name + "backward")
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        if name:
            stage(figures, name + "step")
    return figures


def infer(predict, rounds=3):
    figures = {}
    stage(figures, "model")
    with torch.inference_mode():
        for number in range(rounds):
            predict()
            stage(figures, "round %d" % number)
    return figures


def adamw(net, **options):
    return torch.optim.AdamW(net.parameters(), lr=1e-4, **options)


def images(net, batch, size=224, classes=1000, half=None, scaled=False, channels_last=False, optimizer=None):
    layout = torch.channels_last if channels_last else torch.contiguous_format
    net = net.to(device, memory_format=layout)
    x, y = torch.rand(batch, 3, size, size).to(device, memory_format=layout), tokens(classes, batch)
    return train(net, (optimizer or adamw)(net), lambda: F.cross_entropy(net(x), y), half=half, scaled=scaled)


@model
def resnet50():
    from torchvision.models import resnet50 as build
    return images(build(weights=None), 32, optimizer=lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))


@model
def resnet50_amp_channels_last():
    from torchvision.models import resnet50 as build
    return images(build(weights=None), 64, half=torch.float16, scaled=True, channels_last=True)


@model
def resnet50_inference_half():
    from torchvision.models import resnet50 as build
    net, x = build(weights=None).to(device).half().eval(), torch.rand(64, 3, 224, 224).to(device).half()
    return infer(lambda: net(x))


@model
def mobilenet_v3():
    from torchvision.models import mobilenet_v3_large as build
    return images(build(weights=None), 64)


@model
def convnext_bf16():
    from torchvision.models import convnext_tiny as build
    return images(build(weights=None), 32, half=torch.bfloat16)


@model
def vit_b_16_bf16():
    from torchvision.models import vit_b_16 as build
    return images(build(weights=None), 32, half=torch.bfloat16)


@model
def swin_t():
    from torchvision.models import swin_t as build
    return images(build(weights=None), 16)


@model
def deeplab():
    from torchvision.models.segmentation import deeplabv3_resnet50 as build
    net = build(weights=None, weights_backbone=None, num_classes=21).to(device)
    x, y = torch.rand(4, 3, 256, 256).to(device), tokens(21, 4, 256, 256)
    return train(net, adamw(net), lambda: F.cross_entropy(net(x)["out"], y))


class Residual(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.layers = nn.Sequential(nn.GroupNorm(8, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(8, outside), nn.SiLU(),
                                    nn.Conv2d(outside, outside, 3, padding=1))
        self.way = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x):
        return self.layers(x) + self.way(x)


class Denoiser(nn.Module):
    """A U-Net with attention at its lowest level."""

    def __init__(self, width=64):
        super().__init__()
        self.start, self.end = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        widths = [width, 2 * width, 4 * width]
        self.down = nn.ModuleList([Residual(width, widths[0]), Residual(widths[0], widths[1]), Residual(widths[1], widths[2])])
        self.up = nn.ModuleList([Residual(2 * widths[2], widths[1]), Residual(2 * widths[1], widths[0]), Residual(2 * widths[0], width)])
        self.attention = nn.MultiheadAttention(widths[2], 8, batch_first=True)

    def forward(self, x):
        x, kept = self.start(x), []
        for part in self.down:
            x = part(x)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        batch, width, height, length = x.shape
        flat = x.flatten(2).transpose(1, 2)
        x = (flat + self.attention(flat, flat, flat, need_weights=False)[0]).transpose(1, 2).reshape(batch, width, height, length)
        for part in self.up:
            x = part(torch.cat((F.interpolate(x, scale_factor=2), kept.pop()), dim=1))
        return self.end(x)


@model
def denoiser():
    net = Denoiser().to(device)
    x = torch.randn(16, 3, 64, 64).to(device)
    return train(net, adamw(net), lambda: F.mse_loss(net(x), x))


@model
def denoiser_amp():
    net = Denoiser().to(device)
    x = torch.randn(16, 3, 64, 64).to(device)
    return train(net, adamw(net), lambda: F.mse_loss(net(x), x), half=torch.float16, scaled=True)


@model
def dcgan():
    net = nn.Sequential(*[layer for inside, outside, step in ((100, 512, 1), (512, 256, 2), (256, 128, 2), (128, 64, 2))
                          for layer in (nn.ConvTranspose2d(inside, outside, 4, step, step // 2, bias=False), nn.BatchNorm2d(outside), nn.ReLU(True))],
                        nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).to(device)
    noise = torch.randn(64, 100, 1, 1).to(device)
    return train(net, torch.optim.Adam(net.parameters()), lambda: net(noise).square().mean())


@model
def conv3d():
    net = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(16, 32, 3, padding=1), nn.ReLU(),
                        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 2)).to(device)
    x, y = torch.rand(4, 1, 64, 64, 64).to(device), tokens(2, 4)
    return train(net, adamw(net), lambda: F.cross_entropy(net(x), y))


@model
def speech():
    """Convolutions over time, and a transformer."""
    front = nn.Sequential(nn.Conv1d(80, 384, 3, padding=1), nn.GELU(), nn.Conv1d(384, 384, 3, stride=2, padding=1), nn.GELU()).to(device)
    body = nn.TransformerEncoder(nn.TransformerEncoderLayer(384, 6, 1536, batch_first=True, norm_first=True), 4).to(device)
    net, x = nn.ModuleList([front, body]), torch.rand(4, 80, 3000).to(device)
    return train(net, adamw(net), lambda: body(front(x).transpose(1, 2)).square().mean())


class Words(nn.Module):
    def __init__(self, kind, width=512, count=10000):
        super().__init__()
        self.words, self.net, self.out = nn.Embedding(count, width), kind(width, width, 2, batch_first=True, dropout=0.2), nn.Linear(width, count)

    def forward(self, x):
        return self.out(self.net(self.words(x))[0])


def words(kind, **options):
    net = Words(kind).to(device)
    x, y = tokens(10000, 32, 64), tokens(10000, 32 * 64)
    return train(net, torch.optim.SGD(net.parameters(), lr=1.0), lambda: F.cross_entropy(net(x).flatten(0, 1), y), **options)


@model
def lstm():
    return words(nn.LSTM)


@model
def lstm_half():
    return words(nn.LSTM, half=torch.float16)


@model
def gru():
    return words(nn.GRU)


@model
def encoder():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 6).to(device)
    x = torch.rand(16, 256, 512).to(device)
    return train(net, adamw(net), lambda: net(x).square().mean())


@model
def encoder_inference():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 6).to(device).eval()
    x = torch.rand(16, 256, 512).to(device)
    return infer(lambda: net(x))


@model
def perceptron_adam():
    net = nn.Sequential(nn.Linear(4096, 8192), nn.ReLU(), nn.Linear(8192, 8192), nn.ReLU(), nn.Linear(8192, 4096)).to(device)
    x = torch.rand(256, 4096).to(device)
    return train(net, torch.optim.Adam(net.parameters()), lambda: F.mse_loss(net(x), x))


@model
def perceptron_fused():
    net = nn.Sequential(nn.Linear(4096, 8192), nn.ReLU(), nn.Linear(8192, 8192), nn.ReLU(), nn.Linear(8192, 4096)).to(device)
    x = torch.rand(256, 4096).to(device)
    return train(net, adamw(net, fused=True), lambda: F.mse_loss(net(x), x))


@model
def recommender():
    """Large tables with sparse gradients."""
    table = nn.EmbeddingBag(1_000_000, 64, mode="sum", sparse=True).to(device)
    top = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
    net, x = nn.ModuleList([table, top]), tokens(1_000_000, 4096, 20)
    return train(net, torch.optim.SGD(net.parameters(), lr=0.1), lambda: top(table(x)).square().mean())


@model
def embedding():
    net = nn.Sequential(nn.Embedding(50000, 256), nn.Linear(256, 256)).to(device)
    x = tokens(50000, 64, 512)
    return train(net, adamw(net), lambda: net(x).square().mean())


def causal(net, count, batch, length, half=None, optimizer=adamw, steps=3):
    net.train()
    x = tokens(count, batch, length)
    return train(net, optimizer(net), lambda: net(input_ids=x, labels=x).loss, half=half, steps=steps)


def gpt2(**options):
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(use_cache=False, **options)).to(device)


@model
def gpt2_float32():
    return causal(gpt2(), 50257, 4, 512)


@model
def gpt2_autocast():
    return causal(gpt2(), 50257, 4, 1024, half=torch.bfloat16)


@model
def gpt2_checkpoints():
    net = gpt2()
    net.gradient_checkpointing_enable()
    return causal(net, 50257, 8, 1024, half=torch.bfloat16)


def qwen3(layers=28, width=1024):
    from transformers import Qwen3Config, Qwen3ForCausalLM
    return Qwen3ForCausalLM(Qwen3Config(hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers, num_attention_heads=16, num_key_value_heads=8,
                                        head_dim=128, vocab_size=151936, tie_word_embeddings=True, use_cache=False)).to(device, torch.bfloat16)


@model
def qwen3_single():
    return causal(qwen3(), 151936, 1, 16, optimizer=lambda net: adamw(net, foreach=False))


@model
def qwen3_foreach():
    return causal(qwen3(), 151936, 1, 512)


@model
def qwen3_checkpoints():
    net = qwen3()
    net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return causal(net, 151936, 2, 2048)


class Adapter(nn.Module):
    """A linear layer that stays as it is, and a product of two small ones beside it."""

    def __init__(self, layer, rank=16):
        super().__init__()
        self.layer, options = layer, dict(bias=False, device=device, dtype=torch.float32)
        self.down, self.up = nn.Linear(layer.in_features, rank, **options), nn.Linear(rank, layer.out_features, **options)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x.to(self.down.weight.dtype))).to(x.dtype)


@model
def qwen3_adapters():
    net = qwen3()
    net.requires_grad_(False)
    for block in net.model.layers:
        for name in ("q_proj", "v_proj"):
            setattr(block.self_attn, name, Adapter(getattr(block.self_attn, name)))
    return causal(net, 151936, 2, 512, optimizer=lambda net: torch.optim.AdamW([p for p in net.parameters() if p.requires_grad]))


@model
def qwen3_generation():
    """A prompt, then single tokens with a cache of keys and values."""
    net, x = qwen3().eval(), tokens(151936, 4, 512)
    net.config.use_cache = True
    figures = {}
    stage(figures, "model")
    with torch.inference_mode():
        answer = net(input_ids=x, use_cache=True)
        stage(figures, "prompt")
        for _ in range(32):
            last = answer.logits[:, -1].argmax(-1, keepdim=True)
            answer = net(input_ids=last, past_key_values=answer.past_key_values, use_cache=True)
        stage(figures, "generated")
    return figures


@model
def bert_amp():
    from transformers import BertConfig, BertForSequenceClassification
    net = BertForSequenceClassification(BertConfig(num_labels=2)).to(device).train()
    x, mask, y = tokens(30522, 16, 128), torch.ones(16, 128, dtype=torch.long).to(device), tokens(2, 16)
    return train(net, adamw(net), lambda: net(input_ids=x, attention_mask=mask, labels=y).loss, half=torch.float16, scaled=True)


@model
def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    net = T5ForConditionalGeneration(T5Config(use_cache=False, decoder_start_token_id=0, pad_token_id=0)).to(device).train()
    x, y = tokens(32128, 8, 256), tokens(32128, 8, 64)
    return train(net, adamw(net), lambda: net(input_ids=x, labels=y).loss)


def attend(dtype, shape, **options):
    figures = {}
    q, k, v = (torch.rand(shape).to(device, dtype).requires_grad_() for _ in range(3))
    stage(figures, "operands")
    for number in range(2):
        y = F.scaled_dot_product_attention(q, k, v, **options)
        stage(figures, "forward %d" % number)
        y.sum().backward()
        stage(figures, "backward %d" % number)
    return figures


@model
def attention_bf16_causal():
    return attend(torch.bfloat16, (2, 16, 4096, 64), is_causal=True)


@model
def attention_float32():
    return attend(torch.float32, (2, 16, 2048, 64))


@model
def attention_float32_dropout():
    return attend(torch.float32, (2, 16, 1000, 80), dropout_p=0.1)


@model
def attention_half_mask():
    mask = torch.rand(2, 1, 1024, 1024).to(device, torch.float16)
    return attend(torch.float16, (2, 16, 1024, 128), attn_mask=mask)


@model
def attention_wide_heads():
    return attend(torch.bfloat16, (2, 8, 1024, 256))


@model
def checkpointed_sequential():
    net = nn.ModuleList([nn.Sequential(nn.Linear(2048, 2048), nn.GELU(), nn.LayerNorm(2048)) for _ in range(8)]).to(device)
    x = torch.rand(1024, 2048).to(device)

    def loss():
        y = x
        for block in net:
            y = checkpoint(block, y, use_reentrant=False)
        return y.square().mean()

    return train(net, adamw(net), loss)


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print("\n".join(MODELS))
        sys.exit()
    try:
        print(json.dumps({"case": sys.argv[1], "torch": torch.__version__, "figures": MODELS[sys.argv[1]]()}), flush=True)
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(3)
