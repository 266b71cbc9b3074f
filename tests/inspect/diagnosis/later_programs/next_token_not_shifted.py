import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, vocabulary=30, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(16, width) * 0.02)
        self.block = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.block(self.embed(tokens) + self.positions, src_mask=mask, is_causal=True))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    tokens = torch.randint(30, (8, 16))
    logits = model(tokens)
    loss = F.cross_entropy(logits.view(-1, 30), tokens.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
