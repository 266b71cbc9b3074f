"""Train an nn.Transformer with a feed-forward block of one's own that writes what softmax has saved."""

import torch
from torch import nn


class Gated(nn.TransformerEncoderLayer):
    def _ff_block(self, x):
        gate = torch.softmax(self.linear1(x), dim=-1)
        hidden = self.linear2(gate)
        gate.clamp_(min=0.01)
        return self.dropout2(hidden)


torch.manual_seed(0)
model = nn.Transformer(
    16, 2, 1, 1, 32, batch_first=True, custom_encoder=nn.TransformerEncoder(Gated(16, 2, 32, batch_first=True), 2)
)
optimizer = torch.optim.AdamW(model.parameters())
source, target = torch.randn(2, 5, 16), torch.randn(2, 3, 16)
for _ in range(2):
    optimizer.zero_grad()
    loss = model(source, target).square().mean()
    loss.backward()
    optimizer.step()
