from common import *

model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).to(device)
optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-2)
for step in range(6):
    optimizer.zero_grad(set_to_none=True)
    total = torch.zeros((), device=device)
    for part in range(4):
        x = torch.randn(8, 32, device=device)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean() / 4
        loss.backward()
        total += loss.detach()
    optimizer.step()
    show("step %d" % step, total)
digest(model)
