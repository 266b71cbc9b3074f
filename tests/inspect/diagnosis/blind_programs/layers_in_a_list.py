import gradscope as torch
from gradscope import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(3)]
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    x = torch.randn(32, 8)
    loss = ((model(x) - x[:, :1] * x[:, 1:2]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
