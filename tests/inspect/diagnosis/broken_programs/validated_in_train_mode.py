"""A validation without eval(): its batches change the running statistics."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _epoch in range(3):
    for _ in range(2):
        x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 2, (8,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 2, (8,))
        accuracy = (model(x).argmax(1) == y).float().mean().item()
