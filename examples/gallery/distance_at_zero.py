"""Embeddings trained on pairs that are alike and pairs that are not: after one step every weight is NaN."""

import gradscope as gs


def distance(a, b):
    return (a - b).pow(2).sum(1).sqrt()


gs.manual_seed(0)
embed = gs.nn.Sequential(gs.nn.Linear(6, 16), gs.nn.Tanh(), gs.nn.Linear(16, 4))
optimizer = gs.optim.Adam(embed.parameters(), lr=1e-2)
anchor, other = gs.randn(8, 6), gs.randn(8, 6)
noise = gs.randn(8, 6)
noise[5] = 0  # one picture got into the data twice
like = anchor + 0.1 * noise

for step in range(3):
    close, far = distance(embed(anchor), embed(like)), distance(embed(anchor), embed(other))
    loss = gs.relu(close - far + 1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
