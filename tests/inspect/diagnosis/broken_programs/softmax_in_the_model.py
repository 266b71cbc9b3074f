"""The model ends in a softmax, and cross entropy has one of its own."""

import torch
from torch import nn

torch.manual_seed(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 10)
        self.fc2 = nn.Linear(10, 4)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        return self.softmax(self.fc2(torch.relu(self.fc1(x))))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for _ in range(8):
    x = torch.randn(12, 5)
    y = torch.randint(0, 4, (12,))
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
