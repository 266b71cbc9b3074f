"""Loaded weights are put into new parameters: the optimizer holds the old ones."""

import torch
from torch import nn

torch.manual_seed(71)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
state = {name: value.clone() for name, value in model.state_dict().items()}
model[0].weight = nn.Parameter(state["0.weight"])
model[2].weight = nn.Parameter(state["2.weight"])
for _ in range(5):
    optimizer.zero_grad()
    (model(torch.randn(8, 4)) - 1).pow(2).mean().backward()
    optimizer.step()
