"""A sigmoid in front of a loss that takes logits."""

import torch
from torch import nn

torch.manual_seed(4)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(6):
    x = torch.randn(16, 4)
    y = (x.sum(1, keepdim=True) > 0).float()
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
