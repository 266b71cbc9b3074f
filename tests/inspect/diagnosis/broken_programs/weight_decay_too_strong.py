"""Weight decay of the size of a learning rate of another optimizer: the weights shrink to nothing."""

import torch
from torch import nn

torch.manual_seed(39)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=30.0)
for _ in range(10):
    x = torch.randn(16, 4)
    y = (x[:, 0] > 0).long()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
