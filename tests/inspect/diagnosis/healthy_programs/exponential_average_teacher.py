"""A training that is as it should be: exponential average teacher."""

import copy

import torch
from torch import nn

torch.manual_seed(14)
student = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
teacher = copy.deepcopy(student)
for parameter in teacher.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
for _ in range(6):
    x = torch.randn(16, 6)
    with torch.no_grad():
        target = teacher(x + 0.1 * torch.randn_like(x)).softmax(1)
    loss = -(target * student(x).log_softmax(1)).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(teacher.parameters(), student.parameters()):
            slow.lerp_(fast, 0.01)
