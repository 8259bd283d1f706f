"""The memory of a GPU that is used beside PyTorch's allocator, in bytes, after each step of a program. No other program may use the GPU."""
import json

import torch
from torch.nn import functional as F

found = {}


def stage(name):
    free, total = torch.cuda.mem_get_info()
    found[name] = total - free - torch.cuda.memory_reserved()


torch.cuda.init()
stage("context")
x = torch.ones(256, 256, device="cuda")
stage("a tensor")
(x + x).sum().item()
stage("kernels")
x @ x
torch.cuda.synchronize()
stage("a matrix product")
x.half() @ x.half()
stage("in float16")
F.linear(x, x, x[0])
stage("with a bias")
F.conv2d(x[None, None], x[None, None, :3, :3])
stage("a convolution")
torch.nn.LSTM(256, 256).cuda()(x[:, None])
stage("an LSTM")
torch.linalg.inv(x + torch.eye(256, device="cuda") * 300)
stage("an inverse")
torch.fft.fft(x)
stage("a Fourier transform")
F.scaled_dot_product_attention(*[x.half().reshape(1, 4, 64, 256)[..., :64]] * 3)
stage("attention")
torch.cuda.Stream().synchronize()
stage("a stream")
torch.cuda.empty_cache()
stage("an empty cache")
free, total = torch.cuda.mem_get_info()
print(json.dumps({"case": "context", "torch": torch.__version__, "total": total, "properties": torch.cuda.get_device_properties(0).total_memory, "figures": found}))
