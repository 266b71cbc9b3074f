"""The whole network is frozen where its first layer was meant."""

import torch
from torch import nn

torch.manual_seed(69)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
for parameter in model.parameters():
    parameter.requires_grad = False
model.append(nn.Linear(2, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 2, (8,))).backward()
    optimizer.step()
