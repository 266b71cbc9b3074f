import gradscope as torch
from gradscope import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
for step in range(40):
    state = torch.randn(32, 4)
    returns = state[:, 0] + 0.1 * torch.randn(32)
    logp = torch.log_softmax(actor(state), 1)
    action = torch.randint(0, 3, (32, 1))
    advantage = returns - critic(state).squeeze(1)
    policy_loss = -(logp.gather(1, action).squeeze(1) * advantage).mean()
    loss = policy_loss + 0.5 * (advantage**2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
