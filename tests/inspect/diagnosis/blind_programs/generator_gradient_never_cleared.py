import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.SGD(generator.parameters(), lr=0.05)
opt_d = torch.optim.SGD(critic.parameters(), lr=0.05)
bce = nn.BCEWithLogitsLoss()
for step in range(30):
    real = torch.randn(32, 2) + 2
    fake = generator(torch.randn(32, 4))
    opt_d.zero_grad()
    loss_d = bce(critic(real), torch.ones(32, 1)) + bce(critic(fake), torch.zeros(32, 1))
    loss_d.backward()
    opt_d.step()
    loss_g = bce(critic(generator(torch.randn(32, 4))), torch.ones(32, 1))
    loss_g.backward()
    opt_g.step()
    opt_g.zero_grad()
