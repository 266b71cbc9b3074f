import gradscope as gs
from gradscope import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 32), nn.Tanh())
        self.decoder = nn.Linear(32, 12)

    def forward(self, x):
        z = self.encoder(x)
        z = z.detach().requires_grad_()
        return self.decoder(z)


gs.manual_seed(0)
model = Net()
optimizer = gs.optim.Adam(model.parameters(), lr=1e-3)
for step in range(15):
    x = gs.randn(16, 12)
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
