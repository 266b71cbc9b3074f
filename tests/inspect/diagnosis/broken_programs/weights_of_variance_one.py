"""Weights from a standard normal distribution in a wide, deep network."""

import torch
from torch import nn

torch.manual_seed(22)
layers = []
for _ in range(8):
    layer = nn.Linear(128, 128)
    nn.init.normal_(layer.weight)
    layers += [layer, nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(128, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(4):
    x, y = torch.randn(16, 128), torch.randint(0, 2, (16,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
