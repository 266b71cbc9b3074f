import torch
from torch import nn

torch.manual_seed(0)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(1)
        self.lstm = nn.LSTM(1, 16, batch_first=True)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        out, _ = self.lstm(self.norm(x))
        return self.head(out[:, -1])


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
t = torch.rand(200, 1) * 6
series = torch.sin(t + torch.arange(13) * 0.3).unsqueeze(2)
for step in range(25):
    rows = torch.randint(0, 200, (32,))
    loss = nn.functional.mse_loss(model(series[rows, :-1]), series[rows, -1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
