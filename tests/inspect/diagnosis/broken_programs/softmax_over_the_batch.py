"""A softmax along the batch."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    x, y = torch.randn(10, 6), torch.randint(0, 3, (10,))
    log_probs = F.log_softmax(model(x), dim=0)
    loss = F.nll_loss(log_probs, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
