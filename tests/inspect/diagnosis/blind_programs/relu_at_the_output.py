import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
x = torch.randn(300, 4)
y = -2 - x[:, :1].abs()
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1), nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(40):
    rows = torch.randint(0, 300, (30,))
    loss = ((model(x[rows]) - y[rows]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
