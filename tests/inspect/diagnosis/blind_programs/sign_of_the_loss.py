import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
x = torch.randn(400, 6)
y = (x @ torch.randn(6, 3)).argmax(1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(40):
    rows = torch.randint(0, 400, (40,))
    logp = torch.log_softmax(model(x[rows]), 1)
    loss = logp.gather(1, y[rows].unsqueeze(1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
