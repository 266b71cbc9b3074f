import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(15):
    x, y = torch.randn(32, 20), torch.randint(5, (32,))
    optimizer.zero_grad()
    out = model(x)
    predicted = torch.max(out, 1)[1].float()
    predicted.requires_grad = True
    loss = nn.functional.mse_loss(predicted, y.float())
    loss.backward()
    optimizer.step()
