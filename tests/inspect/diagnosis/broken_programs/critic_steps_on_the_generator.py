"""The optimizer of the critic is given the parameters of both."""

import torch
from torch import nn

torch.manual_seed(54)
generator, critic = nn.Linear(4, 6), nn.Linear(6, 1)
both = nn.ModuleList([generator, critic])
first = torch.optim.Adam(generator.parameters(), lr=1e-3)
second = torch.optim.Adam(both.parameters(), lr=1e-3)
for _ in range(5):
    fake = generator(torch.randn(8, 4))
    loss = critic(fake).mean()
    first.zero_grad()
    second.zero_grad()
    loss.backward()
    first.step()
    second.step()
