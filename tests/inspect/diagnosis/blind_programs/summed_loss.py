import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(2048, 20)
y = x @ torch.randn(20, 1)
for step in range(30):
    rows = torch.randint(0, 2048, (512,))
    loss = nn.functional.mse_loss(model(x[rows]), y[rows], reduction="sum")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
