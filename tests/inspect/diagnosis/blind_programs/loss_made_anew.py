import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(24, 5)
    y = x[:, :3].argmax(1)
    losses = [nn.functional.cross_entropy(model(x[i : i + 8]), y[i : i + 8]) for i in (0, 8, 16)]
    loss = torch.tensor([part.item() for part in losses], requires_grad=True).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
