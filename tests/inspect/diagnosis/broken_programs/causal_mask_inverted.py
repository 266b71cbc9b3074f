"""A causal mask that hides the past and shows the future."""

import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, size, length):
        super().__init__()
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / x.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask == 1, -1e9)
        return self.out(torch.softmax(scores, dim=-1) @ v)


torch.manual_seed(28)
embed, attention, head = nn.Embedding(11, 16), CausalAttention(16, 8), nn.Linear(16, 11)
optimizer = torch.optim.Adam([*embed.parameters(), *attention.parameters(), *head.parameters()], lr=0.01)
for _ in range(5):
    tokens = torch.randint(0, 11, (4, 9))
    logits = head(attention(embed(tokens[:, :-1])))
    loss = nn.functional.cross_entropy(logits.reshape(-1, 11), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
