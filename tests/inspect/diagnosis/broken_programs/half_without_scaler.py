"""Half precision without a loss scale: small gradients are zero."""

import torch
from torch import nn

torch.manual_seed(32)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)).half()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(64, 16).half()
    optimizer.zero_grad()
    loss = (model(x) * 1e-4).pow(2).mean()
    loss.backward()
    optimizer.step()
