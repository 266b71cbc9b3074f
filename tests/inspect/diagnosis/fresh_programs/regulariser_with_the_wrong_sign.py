import gradscope as gs
from gradscope import nn

gs.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = gs.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x, y = gs.randn(16, 12), gs.randint(0, 3, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    for p in model.parameters():
        loss = loss - 0.05 * p.pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
