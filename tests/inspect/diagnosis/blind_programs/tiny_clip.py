import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
x = torch.randn(300, 7)
y = x @ torch.randn(7, 1)
model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    rows = torch.randint(0, 300, (30,))
    loss = ((model(x[rows]) - y[rows]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1e-4)
    optimizer.step()
