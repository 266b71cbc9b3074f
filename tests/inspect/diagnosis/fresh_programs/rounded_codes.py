import torch
from torch import nn


class Quantised(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        code = torch.sigmoid(self.encoder(x))
        code = torch.round(code * 15) / 15
        return self.decoder(code)


torch.manual_seed(0)
model = Quantised()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(15):
    x = torch.rand(16, 16)
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
