"""Train torch.nn.Transformer to copy its source."""

import torch
from torch import nn


class Copier(nn.Module):
    def __init__(self, words=10, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.transformer = nn.Transformer(
            width, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=32, batch_first=True
        )
        self.out = nn.Linear(width, words)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.out(self.transformer(self.embed(source), self.embed(target), tgt_mask=mask))


torch.manual_seed(0)
model = Copier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
words = torch.randint(0, 10, (4, 6))
for step in range(2):
    logits = model(words, words)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), words.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: {loss.item():.4f}")
