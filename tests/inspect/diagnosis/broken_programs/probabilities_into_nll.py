"""nll_loss() of probabilities, without a logarithm."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        return nn.functional.softmax(self.layers(x), dim=1)


torch.manual_seed(52)
net, loss_fn = Net(), nn.NLLLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    loss_fn(net(torch.randn(16, 6)), torch.randint(0, 3, (16,))).backward()
    optimizer.step()
