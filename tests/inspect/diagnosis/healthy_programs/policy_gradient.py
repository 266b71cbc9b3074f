"""A training that is as it should be: policy gradient."""

import torch
from torch import nn

torch.manual_seed(13)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2), nn.Softmax(dim=-1))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for _ in range(4):
    logs, rewards, state = [], [], torch.randn(4)
    for _ in range(5):
        probabilities = policy(state)
        action = torch.multinomial(probabilities.detach(), 1)
        logs.append(probabilities[action].log())
        rewards.append(state.sum() * (2 * action - 1))
        state = torch.randn(4)
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(logs) * (returns - returns.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
