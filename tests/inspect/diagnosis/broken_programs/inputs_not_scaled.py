"""Pixels of 0 to 255 go into a tanh."""

import torch
from torch import nn

torch.manual_seed(23)
model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    x = torch.randint(0, 256, (16, 64)).float()
    y = torch.randint(0, 2, (16,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
