import torch
from torch import nn


class Pooling(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, h, padding):
        weights = torch.softmax(self.score(h).squeeze(-1), dim=-1)
        weights = weights.masked_fill(padding, 0.0)
        return (weights.unsqueeze(-1) * h).sum(1)


torch.manual_seed(0)
embed, pool, head = nn.Embedding(50, 32, padding_idx=0), Pooling(), nn.Linear(32, 3)
parameters = [p for m in (embed, pool, head) for p in m.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
for step in range(20):
    tokens = torch.randint(1, 50, (16, 20))
    lengths = torch.randint(3, 21, (16,))
    tokens[torch.arange(20) >= lengths[:, None]] = 0
    y = tokens[:, 0] % 3
    logits = head(pool(embed(tokens), tokens == 0))
    loss = nn.functional.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
