import torch
from torch import nn

torch.manual_seed(0)
tower = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(tower.parameters(), lr=1e-3)
for step in range(20):
    a = torch.randn(32, 6)
    same = torch.rand(32) < 0.5
    b = torch.where(same[:, None], a, torch.randn(32, 6))
    difference = tower(a) - tower(b)
    distance = difference.pow(2).sum(1).sqrt()
    loss = torch.where(same, distance**2, torch.relu(1 - distance) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
