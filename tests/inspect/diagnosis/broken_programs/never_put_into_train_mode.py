"""A model that comes out of its loader in eval mode, and is fine-tuned."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.1))
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        return self.head(self.body(x))


def load():
    model = Classifier()
    model.eval()
    return model


torch.manual_seed(1)
model = load()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    x, y = torch.randn(10, 6), torch.randint(0, 2, (10,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
