import gradscope as gs
from gradscope import nn


class Encoder(nn.Module):
    def __init__(self, width=16, length=12):
        super().__init__()
        self.tokens = nn.Embedding(50, width)
        self.positions = gs.randn(length, width) * 0.02
        self.layer = nn.Linear(width, width)
        self.head = nn.Linear(width, 3)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        return self.head(gs.relu(self.layer(x)).mean(1))


gs.manual_seed(0)
model = Encoder()
optimizer = gs.optim.Adam(model.parameters(), lr=1e-3)
for step in range(15):
    ids, y = gs.randint(0, 50, (8, 12)), gs.randint(0, 3, (8,))
    loss = nn.functional.cross_entropy(model(ids), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
