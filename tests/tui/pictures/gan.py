"""A GAN: each backward reaches one of two models."""

import gradscope as gs


def mlp(inputs, hidden, outputs):
    return gs.nn.Sequential(gs.nn.Linear(inputs, hidden), gs.nn.ReLU(), gs.nn.Linear(hidden, outputs))


gs.manual_seed(0)
generator, discriminator = mlp(5, 16, 4), mlp(4, 16, 1)
opt_g = gs.optim.Adam(generator.parameters(), lr=1e-3)
opt_d = gs.optim.Adam(discriminator.parameters(), lr=1e-3)

for _ in range(3):
    real, fake = gs.randn(8, 4) + 2, generator(gs.randn(8, 5))
    loss_d = gs.nn.functional.softplus(-discriminator(real)).mean()
    loss_d = loss_d + gs.nn.functional.softplus(discriminator(fake.detach())).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    loss_g = gs.nn.functional.softplus(-discriminator(fake)).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
