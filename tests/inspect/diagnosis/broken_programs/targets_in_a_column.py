"""Targets in a column, predictions squeezed."""

import torch
from torch import nn

torch.manual_seed(56)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    x = torch.randn(10, 4)
    y = x.sum(1, keepdim=True)
    optimizer.zero_grad()
    error = model(x).squeeze() - y
    torch.sqrt((error**2).mean()).backward()
    optimizer.step()
