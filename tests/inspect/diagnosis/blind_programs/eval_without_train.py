import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8) * 3 + 5
y = (x[:, :1] > 5).float()
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def validate():
    model.eval()
    with torch.no_grad():
        return criterion(model(x[300:]), y[300:]).item()


for epoch in range(4):
    for start in range(0, 300, 30):
        loss = criterion(model(x[start : start + 30]), y[start : start + 30])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, validate())
