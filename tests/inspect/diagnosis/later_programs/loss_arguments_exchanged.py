import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(20):
    x = torch.randn(32, 10)
    y = (x[:, :1] > 0).float()
    loss = F.binary_cross_entropy(y, model(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
