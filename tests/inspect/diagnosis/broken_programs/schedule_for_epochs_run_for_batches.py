"""A schedule of epochs is stepped for each batch: the learning rate is gone within the first epoch."""

import torch
from torch import nn

torch.manual_seed(12)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
for _epoch in range(3):
    for _ in range(10):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
        scheduler.step()
