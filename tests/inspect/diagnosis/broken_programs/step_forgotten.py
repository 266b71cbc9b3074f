"""Nobody calls step()."""

import torch
from torch import nn

torch.manual_seed(37)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
