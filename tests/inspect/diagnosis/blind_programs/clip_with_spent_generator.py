import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
parameters = model.parameters()
optimizer = torch.optim.SGD(parameters, lr=1e-3)
x = torch.randn(200, 8) * 5
y = x.pow(2).sum(1, keepdim=True)
for step in range(30):
    rows = torch.randint(0, 200, (20,))
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    print(step, loss.item())
