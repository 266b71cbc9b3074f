import torch
from torch import nn

torch.manual_seed(0)
age = torch.randint(18, 80, (500, 1)).float()
income = torch.randint(10_000, 200_000, (500, 1)).float()
x = torch.cat([age, income, torch.rand(500, 3)], 1)
y = ((income > 80_000) ^ (age > 40)).float()
model = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(40):
    rows = torch.randint(0, 500, (50,))
    loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
