import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
x = torch.randn(400, 12)
y = (x @ torch.randn(12, 4)).argmax(1)
model = nn.Sequential(
    nn.Linear(12, 64),
    nn.ReLU(),
    nn.Dropout(0.95),
    nn.Linear(64, 4),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(40):
    rows = torch.randint(0, 400, (40,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
