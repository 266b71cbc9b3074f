"""A training that is as it should be: truncated recurrence."""

import torch
from torch import nn

torch.manual_seed(11)
embed, rnn, head = nn.Embedding(20, 16), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 20)
parameters = [*embed.parameters(), *rnn.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
state = None
for _ in range(6):
    tokens = torch.randint(0, 20, (4, 9))
    output, state = rnn(embed(tokens[:, :-1]), state)
    state = tuple(part.detach() for part in state)
    loss = nn.functional.cross_entropy(head(output).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
