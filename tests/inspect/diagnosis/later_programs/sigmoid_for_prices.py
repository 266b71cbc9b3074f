import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    x = torch.randn(32, 6)
    price = 20 + 3 * x[:, :1] + torch.randn(32, 1)
    loss = nn.functional.mse_loss(model(x), price)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
