"""An LSTM without batch_first is given the batch first."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 12)
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        output, _ = self.lstm(x)
        return self.head(output[:, -1])


torch.manual_seed(30)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    x, y = torch.randn(8, 6, 5), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
