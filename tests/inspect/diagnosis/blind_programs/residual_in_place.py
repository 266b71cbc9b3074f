import torch
from torch import nn

torch.manual_seed(0)


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        out = torch.sigmoid(self.gate(x))
        mixed = out * self.value(x)
        out += x
        return mixed + out


model = nn.Sequential(Gate(8), Gate(8), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    x = torch.randn(32, 8)
    loss = (model(x) - x.prod(1, keepdim=True)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
