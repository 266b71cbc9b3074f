import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    for micro in range(4):
        optimizer.zero_grad()
        x = torch.randn(8, 10)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean() / 4
        loss.backward()
    optimizer.step()
