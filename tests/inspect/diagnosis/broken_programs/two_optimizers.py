"""Two optimizers hold the encoder."""

import torch
from torch import nn

torch.manual_seed(16)
encoder, head_a, head_b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
optimizer_a = torch.optim.Adam([*encoder.parameters(), *head_a.parameters()], lr=0.01)
optimizer_b = torch.optim.Adam([*encoder.parameters(), *head_b.parameters()], lr=0.01)
for _ in range(5):
    x = torch.randn(8, 4)
    hidden = torch.tanh(encoder(x))
    loss = head_a(hidden).pow(2).mean() + (head_b(hidden) - 1).pow(2).mean()
    optimizer_a.zero_grad()
    optimizer_b.zero_grad()
    loss.backward()
    optimizer_a.step()
    optimizer_b.step()
