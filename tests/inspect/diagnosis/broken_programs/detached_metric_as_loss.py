"""The loss is taken from a list of numbers."""

import torch
from torch import nn

torch.manual_seed(57)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = []
for _ in range(4):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
    history.append(loss.item())
    mean = torch.tensor(history, requires_grad=True).mean()
    optimizer.zero_grad()
    mean.backward()
    optimizer.step()
