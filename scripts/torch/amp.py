from common import *

model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
scaler = torch.cuda.amp.GradScaler(init_scale=1.0, enabled=device == "cuda")
for step in range(6):
    x, y = torch.randn(8, 3, 16, 16).to(device), torch.randint(10, (8,)).to(device)
    optimizer.zero_grad()
    with torch.autocast(device, dtype=torch.bfloat16):
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out.float(), y)
    assert out.dtype == torch.bfloat16
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    show("step %d" % step, loss)
digest(model)
