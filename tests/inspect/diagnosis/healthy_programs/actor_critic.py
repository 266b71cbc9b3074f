"""A training that is as it should be: an actor and a critic that share a body, with clipped ratios of the policy."""

import torch
from torch import nn

torch.manual_seed(19)
body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
actor, critic = nn.Linear(32, 3), nn.Linear(32, 1)
parameters = [p for module in (body, actor, critic) for p in module.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-3)
for _ in range(3):
    state = torch.randn(32, 4)
    with torch.no_grad():
        before = torch.log_softmax(actor(body(state)), 1)
        action = torch.multinomial(before.exp(), 1)
        returns = state.sum(1) * (action.squeeze(1) - 1)
        before = before.gather(1, action).squeeze(1)
    for _ in range(2):
        hidden = body(state)
        value = critic(hidden).squeeze(1)
        advantage = (returns - value).detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        logs = torch.log_softmax(actor(hidden), 1)
        ratio = (logs.gather(1, action).squeeze(1) - before).exp()
        policy = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        entropy = -(logs.exp() * logs).sum(1).mean()
        loss = policy + 0.5 * (returns - value).pow(2).mean() - 0.01 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
