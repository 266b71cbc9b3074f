"""The last layer has a ReLU: no logit can be negative."""

import torch
from torch import nn

torch.manual_seed(51)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3), nn.ReLU())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(8):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 3, (16,))).backward()
    optimizer.step()
