import torch
from torch import nn

torch.manual_seed(0)
q = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
target_q = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
target_q.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
for step in range(40):
    state, next_state = torch.randn(32, 4), torch.randn(32, 4)
    action = torch.randint(0, 2, (32, 1))
    reward, done = torch.randn(32), (torch.rand(32) < 0.1).float()
    value = q(state).gather(1, action).squeeze(1)
    target = reward + 0.99 * (1 - done) * q(next_state).max(1).values
    loss = nn.functional.smooth_l1_loss(value, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        target_q.load_state_dict(q.state_dict())
