"""A classifier of sentences with the parts of a BERT, of eight layers: a backward of 346 nodes."""

import gradscope as gs
from gradscope import nn


class Classifier(nn.Module):
    def __init__(self, layers=8, width=32):
        super().__init__()
        self.words, self.places = nn.Embedding(100, width), nn.Embedding(16, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.pooler, self.head = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.places(gs.arange(ids.shape[1])))
        return self.head(self.pooler(self.encoder(x)[:, 0]).tanh())


gs.manual_seed(0)
model = Classifier()
optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
ids, labels = gs.randint(0, 100, (4, 16)), gs.tensor([0, 1, 0, 1])
for _ in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(ids), labels)
    loss.backward()
    optimizer.step()
