"""A training that is as it should be: gan."""

import torch
from torch import nn

torch.manual_seed(9)
generator = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
first = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
second = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
loss = nn.BCEWithLogitsLoss()
for _ in range(5):
    real, fake = torch.randn(16, 2), generator(torch.randn(16, 4))
    second.zero_grad()
    (loss(critic(real), torch.ones(16, 1)) + loss(critic(fake.detach()), torch.zeros(16, 1))).backward()
    second.step()
    first.zero_grad()
    loss(critic(fake), torch.ones(16, 1)).backward()
    first.step()
