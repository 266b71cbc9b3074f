"""Gradients are clipped to a norm a thousand times below their own."""

import torch
from torch import nn

torch.manual_seed(40)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(8):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1e-5)
    optimizer.step()
