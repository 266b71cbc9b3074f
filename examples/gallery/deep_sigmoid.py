"""Ten layers in place of two, for a harder problem: the loss stays where it began."""

import gradscope as gs

gs.manual_seed(0)
layers = []
for _ in range(10):
    layers += [gs.nn.Linear(16, 16), gs.nn.Sigmoid()]
model = gs.nn.Sequential(*layers, gs.nn.Linear(16, 2))
optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
rows, labels = gs.randn(64, 16), gs.randint(0, 2, (64,))

for step in range(4):
    loss = gs.nn.functional.cross_entropy(model(rows), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
