import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10)).eval()
student = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 10))
criterion = nn.KLDivLoss(reduction="batchmean")
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
for step in range(20):
    x = torch.randn(32, 16)
    with torch.no_grad():
        target = F.softmax(teacher(x) / 2, dim=-1)
    prediction = F.softmax(student(x) / 2, dim=-1)
    loss = criterion(prediction, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
