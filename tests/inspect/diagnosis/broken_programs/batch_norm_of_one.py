"""Batch norm in evaluation mode for a batch of one, never switched back."""

import torch
from torch import nn

torch.manual_seed(55)
model = nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def predict(x):
    model.eval()
    return model(x[None])[0].detach()


for _ in range(5):
    x = torch.randn(8, 5)
    optimizer.zero_grad()
    (model(x) - x[:, :1]).pow(2).mean().backward()
    optimizer.step()
    predict(torch.randn(5))
