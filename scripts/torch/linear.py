from common import *

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(128, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
batches = [(torch.randn(32, 64), torch.randint(10, (32,))) for _ in range(20)]
train(model, optimizer, batches, torch.nn.functional.cross_entropy)
digest(model)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "linear.pt")
loaded = torch.load("linear.pt", map_location=device)
model.load_state_dict(loaded["model"])
optimizer.load_state_dict(loaded["optimizer"])
assert all(p.device.type == device for p in model.parameters())
assert all(v.device.type == "cpu" for v in torch.load("linear.pt", map_location="cpu")["model"].values())
train(model, optimizer, batches[:3], torch.nn.functional.cross_entropy)
digest(model)
