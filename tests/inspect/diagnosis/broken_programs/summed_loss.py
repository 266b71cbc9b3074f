"""A loss that is summed over a large batch, with the learning rate of a mean."""

import torch
from torch import nn

torch.manual_seed(24)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.MSELoss(reduction="sum")
for _ in range(6):
    x = torch.randn(512, 8)
    y = x.sum(1, keepdim=True)
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
