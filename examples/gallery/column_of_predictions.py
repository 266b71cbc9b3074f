"""A linear regression on exact data: the loss ends at the variance of the targets, and the weights at zero."""

import gradscope as gs

gs.manual_seed(0)
rows = gs.randn(100, 2)
targets = 9 * rows[:, 0] - 2 * rows[:, 1]
model = gs.nn.Linear(2, 1)
optimizer = gs.optim.SGD(model.parameters(), lr=0.1)

for _ in range(40):
    loss = ((model(rows) - targets) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, weights {model.weight.tolist()}")
