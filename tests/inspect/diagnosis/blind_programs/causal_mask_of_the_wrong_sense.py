import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        future = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=future)
        return x + self.out(y.transpose(1, 2).reshape(batch, length, width))


embed = nn.Embedding(30, 32)
block = Block(32, 4)
head = nn.Linear(32, 30)
optimizer = torch.optim.AdamW([*embed.parameters(), *block.parameters(), *head.parameters()], lr=3e-3)
for step in range(25):
    tokens = torch.randint(0, 30, (8, 17))
    logits = head(block(embed(tokens[:, :-1])))
    loss = F.cross_entropy(logits.reshape(-1, 30), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
