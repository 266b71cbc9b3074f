"""Gradients are clipped before the scaler has divided by its scale."""

import torch
from torch import nn

torch.manual_seed(33)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(5):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
