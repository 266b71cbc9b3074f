import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
x = torch.randn(300, 8)
y = x @ torch.randn(8, 1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.999, 0.9))
for step in range(60):
    rows = torch.randint(0, 300, (30,))
    loss = ((model(x[rows]) - y[rows]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
