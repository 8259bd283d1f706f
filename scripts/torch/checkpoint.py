from common import *
from torch.utils.checkpoint import checkpoint

layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Dropout(0.2)) for _ in range(6)).to(device)
optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
for step in range(5):
    x = torch.randn(16, 64).to(device).requires_grad_()
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=bool(step % 2))
    loss = x.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show("step %d" % step, loss)
digest(layers)
