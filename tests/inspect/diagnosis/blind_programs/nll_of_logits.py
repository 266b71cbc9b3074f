import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
x = torch.randn(400, 9)
y = (x @ torch.randn(9, 5)).argmax(1)
model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 5))
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(40):
    rows = torch.randint(0, 400, (40,))
    loss = criterion(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
