"""F.dropout without training=: it drops in evaluation, too."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(6, 16), nn.Linear(16, 2)

    def forward(self, x):
        return self.fc2(F.dropout(torch.relu(self.fc1(x)), 0.5))


torch.manual_seed(50)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(3):
    net.train()
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.randn(8, 6)), torch.randint(0, 2, (8,))).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        net(torch.randn(8, 6)).argmax(1)
