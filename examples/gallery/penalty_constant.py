"""A critic whose slope is to be near 1, by a gradient penalty: the penalty changes nothing, whatever its weight."""

import gradscope as gs


def gradient_penalty(critic, real, fake):
    mix = gs.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = gs.autograd.grad(critic(between).sum(), between)
    return ((slope.norm(2, 1) - 1) ** 2).mean()


gs.manual_seed(0)
critic = gs.nn.Sequential(gs.nn.Linear(4, 16), gs.nn.Tanh(), gs.nn.Linear(16, 1))
optimizer = gs.optim.Adam(critic.parameters(), lr=1e-3)

for step in range(3):
    real, fake = gs.randn(8, 4) + 1, gs.randn(8, 4)
    penalty = gradient_penalty(critic, real, fake)
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: penalty {penalty.item():.4f}")
