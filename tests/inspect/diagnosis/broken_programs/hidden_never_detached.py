"""The hidden state is carried from batch to batch with its history."""

import torch
from torch import nn

torch.manual_seed(27)
cell, head = nn.GRUCell(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.0)
hidden = torch.zeros(4, 8)
for _ in range(12):
    x = torch.randn(4, 3)
    hidden = cell(x, hidden)
    loss = (head(hidden) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
