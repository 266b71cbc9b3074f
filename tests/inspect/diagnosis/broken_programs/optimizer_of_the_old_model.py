"""The model is made anew for the second fold, the optimizer is not."""

import torch
from torch import nn

torch.manual_seed(14)


def make():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


model = make()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for fold in range(2):
    if fold:
        model = make()
    for _ in range(4):
        x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
