"""Trains a small convolutional network for a few steps, as a newcomer does."""
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


model = nn.Sequential(block(3, 64), block(64, 128), block(128, 256), block(256, 512), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for step in range(2):
    images = torch.randn(96, 3, 224, 224).to(device)
    labels = torch.randint(0, 1000, (96,)).to(device)
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())
