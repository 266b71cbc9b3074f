"""Attention whose weights are normalised over the queries."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.shape[-1] ** 0.5
        weights = scores.softmax(dim=1)
        return weights @ self.value(x)


torch.manual_seed(6)
model = nn.Sequential(Attention(8), nn.Flatten(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    x, y = torch.randn(4, 6, 8), torch.randint(0, 2, (4,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
