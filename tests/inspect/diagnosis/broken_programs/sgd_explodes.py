"""SGD with the learning rate of a tutorial on features that are not scaled."""

import torch
from torch import nn

torch.manual_seed(60)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(8):
    x = 50 * torch.randn(64, 10)
    optimizer.zero_grad()
    (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
