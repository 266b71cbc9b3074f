"""A bias that was set far below zero."""

import torch
from torch import nn

torch.manual_seed(67)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
nn.init.constant_(model[0].bias, -50.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    (model(torch.randn(16, 6)) - 1).pow(2).mean().backward()
    optimizer.step()
