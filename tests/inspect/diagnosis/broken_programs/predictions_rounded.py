"""A metric is taken for the loss."""

import torch
from torch import nn

torch.manual_seed(34)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(16, 4)
    y = (x.sum(1) > 0).float()
    predicted = torch.round(torch.sigmoid(model(x).squeeze(1)))
    loss = (predicted - y).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
