"""The decoder is tied to the embedding, and then initialised with a new parameter."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.decoder = nn.Linear(8, 12, bias=False)
        self.decoder.weight = self.embed.weight
        self.reset()

    def reset(self):
        self.embed.weight = nn.Parameter(self.decoder.weight.detach().clone())

    def forward(self, tokens):
        return self.decoder(self.embed(tokens))


torch.manual_seed(35)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    tokens = torch.randint(0, 12, (16,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(tokens), tokens).backward()
    optimizer.step()
