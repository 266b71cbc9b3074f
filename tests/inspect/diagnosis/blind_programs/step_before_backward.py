import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
x = torch.randn(200, 6)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    rows = torch.randint(0, 200, (20,))
    loss = ((model(x[rows]) - y[rows]) ** 2).mean()
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
