import torch
from torch import nn


class LoRA(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.zeros(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


torch.manual_seed(0)
model = nn.Sequential(LoRA(nn.Linear(16, 32)), nn.ReLU(), LoRA(nn.Linear(32, 4)))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for step in range(15):
    x, y = torch.randn(16, 16), torch.randint(4, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
