"""The loss is put into a new tensor."""

import torch
from torch import nn

torch.manual_seed(38)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    losses = [model(torch.randn(8, 4)).pow(2).mean() for _ in range(2)]
    total = torch.tensor([loss.item() for loss in losses], requires_grad=True).sum()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
