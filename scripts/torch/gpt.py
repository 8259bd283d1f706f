from common import *
from gpt_model import GPT

model = GPT().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
batches = [(t[:, :-1], t[:, 1:]) for t in (torch.randint(256, (8, 65)) for _ in range(6))]
train(model, optimizer, batches, lambda out, y: torch.nn.functional.cross_entropy(out.flatten(0, 1), y.flatten()))
digest(model)
