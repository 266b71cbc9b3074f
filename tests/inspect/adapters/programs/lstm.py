"""Train an LSTM on a sine, carrying its state from one piece to the next."""

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 8, num_layers=2)
        self.head = nn.Linear(8, 1)

    def forward(self, x, state):
        y, state = self.lstm(x, state)
        return self.head(y), state


torch.manual_seed(0)
model = Forecaster()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
wave = torch.sin(torch.arange(33.0) / 3).reshape(-1, 1, 1)
state = None
for piece in range(4):
    start = piece * 8
    forecast, state = model(wave[start : start + 8], state)
    loss = nn.functional.mse_loss(forecast, wave[start + 1 : start + 9])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = tuple(part.detach() for part in state)
    print(f"piece {piece}: {loss.item():.4f}")
