"""A validation that leaves the model in eval mode."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
data = [(torch.randn(16, 8), torch.randint(0, 3, (16,))) for _ in range(3)]


def evaluate():
    model.eval()
    with torch.no_grad():
        return sum(criterion(model(x), y).item() for x, y in data)


model.train()
for _epoch in range(3):
    for x, y in data:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    evaluate()
