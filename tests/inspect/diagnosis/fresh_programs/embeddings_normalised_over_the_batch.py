import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for step in range(15):
    x = torch.randn(24, 16)
    a = F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=0)
    b = F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=0)
    similarity = a @ b.T / 0.1
    loss = F.cross_entropy(similarity, torch.arange(24))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
