"""zero_grad() between backward() and step()."""

import torch
from torch import nn

torch.manual_seed(9)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(6):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
