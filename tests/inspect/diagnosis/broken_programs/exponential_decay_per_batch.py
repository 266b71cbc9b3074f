"""ExponentialLR with gamma for epochs, stepped in each batch."""

import torch
from torch import nn

torch.manual_seed(59)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
for _epoch in range(4):
    for _ in range(8):
        optimizer.zero_grad()
        (model(torch.randn(8, 4)) - 1).pow(2).mean().backward()
        optimizer.step()
        scheduler.step()
