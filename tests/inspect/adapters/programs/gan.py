"""Train a generator against a discriminator, each with an optimizer of its own."""

import torch
from torch import nn


class Generator(nn.Sequential):
    pass


class Discriminator(nn.Sequential):
    pass


torch.manual_seed(0)
generator = Generator(nn.Linear(2, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
discriminator = Discriminator(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_discriminator = torch.optim.SGD(discriminator.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
for step in range(2):
    real, noise = torch.randn(4, 2) + 3, torch.randn(4, 2)
    fake = generator(noise)
    of_discriminator.zero_grad()
    right = criterion(discriminator(real), torch.ones(4, 1))
    right.backward()
    wrong = criterion(discriminator(fake.detach()), torch.zeros(4, 1))
    wrong.backward()
    of_discriminator.step()
    of_generator.zero_grad()
    fooled = criterion(discriminator(fake), torch.ones(4, 1))
    fooled.backward()
    of_generator.step()
    print(f"step {step}: {right.item():.4f} {wrong.item():.4f} {fooled.item():.4f}")
