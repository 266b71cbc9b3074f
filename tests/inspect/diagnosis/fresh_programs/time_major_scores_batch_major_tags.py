import gradscope as gs
from gradscope import nn

gs.manual_seed(0)
embedding, rnn, head = nn.Embedding(30, 16), nn.GRU(16, 24), nn.Linear(24, 6)
parameters = [p for m in (embedding, rnn, head) for p in m.parameters()]
optimizer = gs.optim.Adam(parameters, lr=1e-3)
for step in range(10):
    tokens, tags = gs.randint(0, 30, (8, 12)), gs.randint(0, 6, (8, 12))
    out, _ = rnn(embedding(tokens.T))
    scores = head(out)
    loss = nn.functional.cross_entropy(scores.reshape(-1, 6), tags.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
