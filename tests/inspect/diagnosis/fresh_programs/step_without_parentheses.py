import gradscope as gs
from gradscope import nn

gs.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = gs.optim.SGD(model.parameters(), lr=0.05)
for step in range(15):
    x = gs.randn(16, 10)
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step
