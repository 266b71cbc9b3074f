"""A layer that forward() makes anew each time."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return nn.Linear(8, 1)(hidden)


torch.manual_seed(17)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(5):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    (net(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
