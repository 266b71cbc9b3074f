import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.rnn = nn.LSTM(16, 16)
        self.out = nn.Linear(16, 20)

    def forward(self, tokens):
        batch, length = tokens.shape
        x = self.embed(tokens).view(length, batch, 16)
        y, _ = self.rnn(x)
        return self.out(y).view(batch, length, 20)


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(25):
    tokens = torch.randint(0, 20, (8, 11))
    target = tokens.roll(1, 1)
    loss = nn.functional.cross_entropy(model(tokens).transpose(1, 2), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
