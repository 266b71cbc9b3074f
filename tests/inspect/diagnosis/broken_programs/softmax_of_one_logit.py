"""A binary classifier with one output and a softmax."""

import torch
from torch import nn

torch.manual_seed(53)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1), nn.Softmax(dim=1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    target = torch.randint(0, 2, (16, 1)).float()
    nn.functional.binary_cross_entropy(model(torch.randn(16, 6)), target).backward()
    optimizer.step()
