"""A padded sequence of which nothing is left."""

import torch
from torch import nn

torch.manual_seed(29)
embed, head = nn.Embedding(10, 8, padding_idx=0), nn.Linear(8, 2)
optimizer = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    tokens = torch.tensor([[3, 4, 0], [5, 0, 0], [0, 0, 0]])
    x = embed(tokens)
    scores = (x @ x.transpose(1, 2)).masked_fill((tokens == 0)[:, None, :], float("-inf"))
    pooled = (scores.softmax(-1) @ x).mean(1)
    loss = nn.functional.cross_entropy(head(pooled), torch.tensor([0, 1, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
