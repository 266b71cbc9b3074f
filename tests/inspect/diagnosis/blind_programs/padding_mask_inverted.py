import torch
from torch import nn

torch.manual_seed(0)
vocabulary, width, pad = 50, 32, 0
embed = nn.Embedding(vocabulary, width, padding_idx=pad)
layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
head = nn.Linear(width, 2)
parameters = [*embed.parameters(), *layer.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
for step in range(25):
    tokens = torch.randint(1, vocabulary, (16, 12))
    lengths = torch.randint(4, 12, (16,))
    tokens[torch.arange(12) >= lengths[:, None]] = pad
    y = (tokens == 7).any(1).long()
    keep = tokens != pad
    hidden = layer(embed(tokens), src_key_padding_mask=keep)
    loss = nn.functional.cross_entropy(head(hidden.mean(1)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
