"""The hidden state is detached at every time step: nothing is learned over time."""

import torch
from torch import nn

torch.manual_seed(26)
cell, head = nn.GRUCell(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.01)
for _ in range(5):
    x = torch.randn(6, 4, 3)
    hidden = torch.zeros(4, 8)
    for t in range(6):
        hidden = cell(x[t], hidden.detach())
    loss = (head(hidden) - x[0, :, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
