"""A training that is as it should be: low rank adapters."""

import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, layer, rank=4):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.down.T @ self.up.T


torch.manual_seed(8)
model = nn.Sequential(Adapted(nn.Linear(8, 16)), nn.GELU(), Adapted(nn.Linear(16, 4)))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for _ in range(6):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(16, 8)), torch.randint(0, 4, (16,))).backward()
    optimizer.step()
