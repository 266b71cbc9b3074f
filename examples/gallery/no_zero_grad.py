"""A small regression with SGD, by steps that are small enough: the loss swings up and down."""

import gradscope as gs


def train(model, rows, targets, epochs):
    optimizer = gs.optim.SGD(model.parameters(), lr=0.05)
    optimizer.zero_grad()
    for epoch in range(epochs):
        loss = gs.nn.functional.mse_loss(model(rows), targets)
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


gs.manual_seed(0)
rows = gs.randn(64, 4)
model = gs.nn.Sequential(gs.nn.Linear(4, 16), gs.nn.Tanh(), gs.nn.Linear(16, 1))
train(model, rows, rows.sum(1, keepdim=True), epochs=8)
