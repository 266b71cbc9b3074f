"""Gradients are clipped when the optimizer has used them."""

import torch
from torch import nn

torch.manual_seed(10)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
