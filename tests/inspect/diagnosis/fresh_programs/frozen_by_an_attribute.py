import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
head = nn.Linear(64, 3)
backbone.requires_grad = False
model = nn.Sequential(backbone, head)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(15):
    x, y = torch.randn(16, 16), torch.randint(3, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
