"""view() where transpose() was meant: rows of different samples get mixed."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3, 8)
        self.rnn = nn.GRU(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        batch, time, _ = x.shape
        x = self.embed(x).view(time, batch, 8)
        output, _ = self.rnn(x)
        return self.head(output[-1])


torch.manual_seed(31)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    x, y = torch.randn(6, 4, 3), torch.randint(0, 2, (6,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
