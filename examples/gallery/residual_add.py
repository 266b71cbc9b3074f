"""A residual block that adds its branch in place, to spare memory: backward() raises."""

import gradscope as gs


class Block(gs.nn.Module):
    """Two layers with a skip connection around the second."""

    def __init__(self, width):
        super().__init__()
        self.enter = gs.nn.Linear(width, width)
        self.inner = gs.nn.Linear(width, width)

    def forward(self, x):
        x = gs.relu(self.enter(x))
        residual = self.inner(x)
        x += residual
        return gs.relu(x)


gs.manual_seed(0)
model = gs.nn.Sequential(Block(8), Block(8), gs.nn.Linear(8, 3))
optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
images, labels = gs.randn(16, 8), gs.randint(0, 3, (16,))

for _ in range(5):
    optimizer.zero_grad()
    loss = gs.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
