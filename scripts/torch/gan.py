from common import *
from torch import nn

maker = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 32), nn.Tanh()).to(device)
judge = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)).to(device)
of_maker, of_judge = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999)), torch.optim.Adam(judge.parameters(), lr=2e-4)
criterion = nn.BCEWithLogitsLoss()
for step in range(10):
    real, noise = torch.rand(24, 32, device=device), torch.randn(24, 16, device=device)
    made = maker(noise)
    of_judge.zero_grad()
    loss = criterion(judge(real), torch.ones(24, 1, device=device)) + criterion(judge(made.detach()), torch.zeros(24, 1, device=device))
    loss.backward()
    of_judge.step()
    of_maker.zero_grad()
    other = criterion(judge(made), torch.ones(24, 1, device=device))
    other.backward()
    of_maker.step()
    show("step %d judge" % step, loss)
    show("step %d maker" % step, other)
digest(maker)
