"""A training that is as it should be: variational autoencoder."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(10)
encoder, decoder = (
    nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 8)),
    nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 20)),
)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for _ in range(5):
    x = torch.rand(32, 20)
    mean, log_variance = encoder(x).chunk(2, dim=1)
    z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
    reconstruction = F.binary_cross_entropy(torch.sigmoid(decoder(z)), x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
    optimizer.zero_grad()
    (reconstruction + divergence).backward()
    optimizer.step()
