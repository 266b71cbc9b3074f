import torch
from torch import nn


def seed_everything(seed=42):
    torch.manual_seed(seed)


model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
clean = torch.randn(20, 32, 8)
for step in range(20):
    seed_everything()
    noisy = clean[step] + 0.3 * torch.randn(32, 8)
    loss = nn.functional.mse_loss(model(noisy), clean[step])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
