import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(20, 32)
        self.mu = nn.Linear(32, 4)
        self.logvar = nn.Linear(32, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 20))

    def forward(self, x):
        h = torch.relu(self.encoder(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = torch.distributions.Normal(mu, torch.exp(0.5 * logvar)).sample()
        return self.decoder(z)


torch.manual_seed(0)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(15):
    x = torch.rand(16, 20)
    loss = ((model(x) - x) ** 2).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
