import torch
from torch import nn

torch.manual_seed(0)
model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
head = nn.Linear(16, 1)
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-3)
warmup = 1000
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step // warmup))
for step in range(30):
    x = torch.randn(16, 7, 16)
    loss = nn.functional.mse_loss(head(model(x)).squeeze(2), x.sum(2))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
