import torch
from torch import nn

torch.manual_seed(0)


class Deep(nn.Module):
    def __init__(self, width=32, depth=6):
        super().__init__()
        self.stem = nn.Linear(10, width)
        self.blocks = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU())] * depth)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


model = Deep()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(256, 10)
y = x[:, :1] * x[:, 1:2]
for step in range(30):
    rows = torch.randint(0, 256, (32,))
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
