import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.fc = nn.Linear(64, 1000)

    def forward(self, x):
        return self.fc(self.body(x))


model = Net()
for parameter in model.body.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.05, momentum=0.9)
model.fc = nn.Linear(64, 5)
x = torch.randn(300, 12)
y = (x[:, :5]).argmax(1)
for step in range(30):
    rows = torch.randint(0, 300, (32,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
