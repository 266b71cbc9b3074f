import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1)).half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(256, 16).half() * 0.01
y = x.sum(1, keepdim=True)
for step in range(20):
    loss = ((model(x) - y) ** 2).mean() * 1e-3
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
