"""A GAN that runs its discriminator once for both losses, to spare a forward pass: the second backward() raises."""

import gradscope as gs


def mlp(inputs, hidden, outputs):
    return gs.nn.Sequential(gs.nn.Linear(inputs, hidden), gs.nn.ReLU(), gs.nn.Linear(hidden, outputs))


gs.manual_seed(0)
generator, discriminator = mlp(5, 16, 4), mlp(4, 16, 1)
opt_g = gs.optim.Adam(generator.parameters(), lr=1e-3)
opt_d = gs.optim.Adam(discriminator.parameters(), lr=1e-3)

for _ in range(3):
    real = gs.randn(8, 4) + 2
    fake = generator(gs.randn(8, 5))
    on_real, on_fake = discriminator(real), discriminator(fake)
    loss_d = gs.nn.functional.softplus(-on_real).mean() + gs.nn.functional.softplus(on_fake).mean()
    loss_g = gs.nn.functional.softplus(-on_fake).mean()

    opt_d.zero_grad()
    loss_d.backward(retain_graph=True)
    opt_d.step()

    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
