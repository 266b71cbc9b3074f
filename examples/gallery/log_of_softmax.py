"""A classifier that gives out probabilities, trained on their logarithm: the loss is inf, then NaN."""

import gradscope as gs


class Classifier(gs.nn.Module):
    """Gives the probabilities of four classes."""

    def __init__(self):
        super().__init__()
        self.body = gs.nn.Sequential(gs.nn.Linear(5, 64), gs.nn.ReLU(), gs.nn.Linear(64, 4))

    def forward(self, x):
        return gs.softmax(self.body(x), 1)


gs.manual_seed(0)
model = Classifier()
optimizer = gs.optim.SGD(model.parameters(), lr=1e-5)
rows, labels = 200 * gs.randn(32, 5), gs.randint(0, 4, (32,))

for step in range(3):
    likelihood = model(rows)[gs.arange(32), labels]
    loss = -gs.log(likelihood).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
