"""A norm of 1e-6 was taken from the optimizer's eps."""

import torch
from torch import nn

torch.manual_seed(63)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for _ in range(10):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 3, (16,))).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1e-6)
    optimizer.step()
