"""Train a model of PyTorch with all that is written in place where it may be, and print what came out."""

import hashlib

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.relu = nn.ReLU(inplace=True)
        self.dropout = nn.Dropout(0.1, inplace=True)

    def forward(self, x):
        return x + self.relu(self.norm(self.dropout(self.linear(x))))


class Model(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.enter = nn.Linear(8, 16)
        self.first, self.second = Block(16), Block(16)
        self.leave = nn.Linear(16, 4)
        self.reentrant = reentrant

    def forward(self, x):
        x = self.first(self.enter(x))
        if self.training:
            return self.leave(checkpoint(self.second, x, use_reentrant=self.reentrant))
        return self.leave(self.second(x))


def train(optimizer_class, reentrant=False, **options):
    torch.manual_seed(0)
    model = Model(reentrant)
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = optimizer_class(model.parameters(), lr=0.01, **options)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
    x, y = torch.randn(32, 8), torch.randint(4, (32,))
    for step in range(3):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        average.update_parameters(model)
    model.eval()
    with torch.no_grad():
        model(x).softmax(-1).mul_(2)
    values = [*model.state_dict().values(), *average.state_dict().values()]
    return b"".join(value.numpy().tobytes() for value in values)


digest = hashlib.sha256()
for options in ({"foreach": True}, {"fused": True}, {"foreach": False}):
    digest.update(train(torch.optim.Adam, **options))
digest.update(train(torch.optim.SGD, momentum=0.9, reentrant=True))
print("result", digest.hexdigest())
