import gradscope as gs
from gradscope import nn


class Attention(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(-2, -1)
        return gs.softmax(scores, -1) @ self.v(x)


gs.manual_seed(0)
embed, attention, head = nn.Linear(8, 256), Attention(), nn.Linear(256, 4)
norm = nn.LayerNorm(256)
parameters = [p for m in (embed, attention, head, norm) for p in m.parameters()]
optimizer = gs.optim.Adam(parameters, lr=1e-3)
for step in range(10):
    x, y = gs.randn(4, 16, 8) * 3, gs.randint(0, 4, (4,))
    h = norm(embed(x)) * 4
    loss = nn.functional.cross_entropy(head(attention(h).mean(1)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
