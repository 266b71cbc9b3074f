import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(10, 64), nn.Linear(64, 4)

    def forward(self, x):
        return self.b(F.dropout(F.relu(self.a(x)), 0.5))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for step in range(5):
        x, y = torch.randn(32, 10), torch.randint(4, (32,))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        validation = F.cross_entropy(model(torch.randn(64, 10)), torch.randint(4, (64,)))
