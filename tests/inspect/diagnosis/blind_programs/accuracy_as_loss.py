import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
x = torch.randn(300, 8)
y = (x[:, 0] > 0).float()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(25):
    rows = torch.randint(0, 300, (30,))
    decision = model(x[rows]).squeeze(1).round()
    loss = ((decision - y[rows]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
