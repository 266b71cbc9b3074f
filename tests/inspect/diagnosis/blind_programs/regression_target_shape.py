import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 5)
y = x @ torch.randn(5) + 0.1 * torch.randn(256)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(40):
    rows = torch.randint(0, 256, (32,))
    prediction = model(x[rows])
    loss = nn.functional.mse_loss(prediction, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
