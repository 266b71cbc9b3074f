"""A parameter that forward() replaces."""

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        self.scale = nn.Parameter(self.scale.clamp(0.1, 10.0))
        return self.layer(x) * self.scale


torch.manual_seed(18)
model = Scale()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(5):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    (model(x) - 3 * x).pow(2).mean().backward()
    optimizer.step()
