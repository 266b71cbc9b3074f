"""scheduler.step() in front of optimizer.step(): the first learning rate is never used."""

import torch
from torch import nn

torch.manual_seed(13)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
for _epoch in range(4):
    scheduler.step()
    for _ in range(2):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
