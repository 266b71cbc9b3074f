"""A learning rate at which nothing moves."""

import torch
from torch import nn

torch.manual_seed(20)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8)
for _ in range(10):
    x = torch.randn(32, 4)
    y = (x[:, 0] > 0).long()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
