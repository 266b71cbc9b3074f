import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(640, 10)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
for epoch in range(3):
    for start in range(0, 640, 32):
        loss = ((model(x[start : start + 32]) - y[start : start + 32]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(epoch, loss.item())
