import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(128, 4) * 30
y = torch.eye(6)[torch.randint(0, 6, (128,))]
for step in range(30):
    p = torch.softmax(model(x) * 10, 1)
    loss = -(y * torch.log(p)).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
