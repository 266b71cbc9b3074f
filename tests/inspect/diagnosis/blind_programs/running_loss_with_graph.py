import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
total_loss = 0
for step in range(40):
    x = torch.randn(64, 20)
    loss = ((model(x) - x[:, :1]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total_loss += loss
print(total_loss / 40)
