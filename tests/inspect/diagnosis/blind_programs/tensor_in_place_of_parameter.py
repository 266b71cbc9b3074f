import gradscope as torch
from gradscope import nn

torch.manual_seed(0)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 5)
        self.temperature = torch.full((1,), 3.0, requires_grad=True)

    def forward(self, x):
        return self.linear(x) / self.temperature


model = Scaled()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    x = torch.randn(32, 5)
    loss = nn.functional.cross_entropy(model(x), x.argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
