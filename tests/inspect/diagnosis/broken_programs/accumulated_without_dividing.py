"""Eight batches are accumulated, and their means added."""

import torch
from torch import nn

torch.manual_seed(25)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 8
for step in range(32):
    x = torch.randn(4, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    if (step + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
