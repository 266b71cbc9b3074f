"""deepcopy() in place of tying."""

import copy

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(14, 6)
        self.out = nn.Linear(6, 14, bias=False)
        self.out.weight = copy.deepcopy(self.embed.weight)

    def forward(self, tokens):
        return self.out(torch.tanh(self.embed(tokens)))


torch.manual_seed(66)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    tokens = torch.randint(0, 14, (12,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(tokens), tokens).backward()
    optimizer.step()
