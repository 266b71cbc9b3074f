"""Layers whose weights are far too large, so that the gradient grows from each to the next."""

import gradscope as gs

gs.manual_seed(0)
layers = []
for _ in range(8):
    layer = gs.nn.Linear(32, 32)
    gs.nn.init.normal_(layer.weight, std=1.0)
    layers += [layer, gs.nn.ReLU()]
model = gs.nn.Sequential(*layers, gs.nn.Linear(32, 1))
optimizer = gs.optim.SGD(model.parameters(), lr=1e-12)
rows, wanted = gs.randn(16, 32), gs.randn(16, 1)

for _ in range(3):
    loss = gs.nn.functional.mse_loss(model(rows), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
