"""Gradients are clipped before there are any."""

import torch
from torch import nn

torch.manual_seed(11)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    x = torch.randn(8, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
