import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 10)
y = (x @ torch.randn(10, 4)).argmax(1)
x = x[torch.randperm(600)]
y = y[torch.randperm(600)]
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    for start in range(0, 600, 60):
        loss = nn.functional.cross_entropy(model(x[start : start + 60]), y[start : start + 60])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
