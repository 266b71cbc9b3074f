"""A training that is as it should be: a neural differential equation, solved and differentiated by torchdiffeq."""

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint

torch.manual_seed(34)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y)


times = torch.linspace(0.0, 1.0, 5)
rotation = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
start = torch.randn(16, 2)
with torch.no_grad():
    truth = odeint(lambda t, y: y @ rotation, start, times)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
for step in range(8):
    solve = odeint_adjoint if step % 2 else odeint
    loss = nn.functional.mse_loss(solve(field, start, times, method="rk4"), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
