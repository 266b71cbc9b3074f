import torch
from torch import nn

torch.manual_seed(0)


class LanguageModel(nn.Module):
    def __init__(self, vocabulary=40, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.Linear(width, vocabulary, bias=False)
        self.decoder.weight = self.embed.weight

    def initialise(self):
        self.embed.weight = nn.Parameter(torch.empty_like(self.embed.weight).uniform_(-0.1, 0.1))

    def forward(self, tokens):
        return self.decoder(self.lstm(self.embed(tokens))[0])


model = LanguageModel()
model.initialise()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(25):
    tokens = torch.randint(0, 40, (8, 13))
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
