import gradscope as gs
from gradscope import nn


def evaluate(model, x, y):
    gs.set_grad_enabled(False)
    model.eval()
    loss = nn.functional.cross_entropy(model(x), y).item()
    model.train()
    return loss


gs.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = gs.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for step in range(5):
        x, y = gs.randn(16, 10), gs.randint(0, 4, (16,))
        loss = nn.functional.cross_entropy(model(x), y)
        loss.requires_grad_(True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evaluate(model, gs.randn(16, 10), gs.randint(0, 4, (16,)))
