import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
embed, head = nn.Embedding(30, 12), nn.Linear(12, 2)
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()], lr=1e-2)
for step in range(30):
    tokens = torch.randint(1, 30, (16, 6))
    if step % 7 == 5:
        tokens[3] = 0
    mask = (tokens != 0).float().unsqueeze(2)
    pooled = (embed(tokens) * mask).sum(1) / mask.sum(1)
    loss = nn.functional.cross_entropy(head(pooled), (tokens == 7).any(1).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
