"""Whether a GPT of 7 billion parameters trains on the session's GPU: one step of Adam. It takes seconds and little memory on a
host with compute = "shapes".

    seven.py [DTYPE [TOKENS]]    bfloat16 and 2048 unless named

It prints the peaks of GPU memory in GiB, and what the answer took: seconds, and this process' memory in MiB."""
import resource
import sys
import time

import torch
from gpt_model import GPT

started = time.monotonic()
kind, length = (sys.argv + ["bfloat16", "2048"][len(sys.argv) - 1:])[1:3]
GIB = 1 << 30
phase = "model"
model = GPT(vocabulary=65536, width=4096, heads=32, layers=32, length=int(length)).to(dtype=getattr(torch, kind))
try:
    model.to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    tokens = torch.zeros(1, int(length) + 1, dtype=torch.long, device="cuda")
    for _ in range(2):  # from the second step on Adam's state is there during the forward pass
        phase = "forward"
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        phase = "backward"
        loss.backward()
        phase = "Adam"
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    phase = ""
except torch.cuda.OutOfMemoryError as error:
    print(error, file=sys.stderr)
print("gpu=%r total=%.2f dtype=%s parameters=%.3f fits=%s fails-in=%s allocated=%.2f reserved=%.2f seconds=%.1f resident=%d" % (
    torch.cuda.get_device_name(), torch.cuda.mem_get_info()[1] / GIB, kind, sum(p.numel() for p in model.parameters()) / 1e9,
    "no" if phase else "yes", phase or "-", torch.cuda.max_memory_allocated() / GIB, torch.cuda.max_memory_reserved() / GIB,
    time.monotonic() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10), flush=True)
