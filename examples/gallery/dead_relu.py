"""A regression on features between 0 and 20: the loss jumps, then stays at one value, that of a constant guess."""

import gradscope as gs

gs.manual_seed(0)
model = gs.nn.Sequential(gs.nn.Linear(6, 32), gs.nn.ReLU(), gs.nn.Linear(32, 1))
optimizer = gs.optim.SGD(model.parameters(), lr=0.5)
rows = 20 * gs.rand(64, 6)
targets = rows.sum(1, keepdim=True)

for step in range(8):
    loss = gs.nn.functional.mse_loss(model(rows), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4g}")
