"""A network whose depth is an argument: it trains, but no better than its last layer alone."""

import gradscope as gs


class Classifier(gs.nn.Module):
    """As many hidden layers as asked for, and a linear layer on top."""

    def __init__(self, width, depth):
        super().__init__()
        self.hidden = [gs.nn.Linear(width, width) for _ in range(depth)]
        self.head = gs.nn.Linear(width, 3)

    def forward(self, x):
        for layer in self.hidden:
            x = gs.relu(layer(x))
        return self.head(x)


gs.manual_seed(0)
model = Classifier(8, depth=3)
optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
images, labels = gs.randn(64, 8), gs.randint(0, 3, (64,))

for step in range(5):
    optimizer.zero_grad()
    loss = gs.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
print(len(list(model.parameters())), "parameters")
