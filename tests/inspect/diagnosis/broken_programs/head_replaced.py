"""The head is replaced when the optimizer has been made."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


torch.manual_seed(15)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.head = nn.Linear(8, 2)
for _ in range(5):
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
