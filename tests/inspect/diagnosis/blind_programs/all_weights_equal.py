import gradscope as torch
from gradscope import nn

torch.manual_seed(0)


def reset(module):
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, 0.05)
        nn.init.zeros_(module.bias)


model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
model.apply(reset)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    x = torch.randn(64, 6)
    loss = ((model(x) - x[:, :1] * x[:, 1:2]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
