"""MultiheadAttention without batch_first is given the batch first."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(5, 8)
        self.attention = nn.MultiheadAttention(8, 2)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x = self.embed(x)
        mixed, _ = self.attention(x, x, x)
        return self.head(mixed.mean(1))


torch.manual_seed(64)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(4):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(6, 7, 5)), torch.randint(0, 2, (6,))).backward()
    optimizer.step()
