"""Predictions in a column, targets in a row."""

import torch
from torch import nn

torch.manual_seed(7)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(20, 3)
y = x[:, 0] * 2 - x[:, 1]
for _ in range(6):
    optimizer.zero_grad()
    loss = (model(x) - y).abs().mean()
    loss.backward()
    optimizer.step()
