import torch
from torch import nn

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(12, 24)
        self.mu = nn.Linear(24, 4)
        self.logvar = nn.Linear(24, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 12))

    def forward(self, x):
        h = torch.relu(self.encoder(x))
        z = torch.normal(self.mu(h), (0.5 * self.logvar(h)).exp())
        return self.decoder(z)


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(25):
    x = torch.randn(64, 12)
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
