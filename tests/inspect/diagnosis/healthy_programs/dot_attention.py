"""A training that is as it should be: attention of a recurrent decoder, by products that are small without a scale."""

import torch
from torch import nn

torch.manual_seed(29)
embed, encoder, decoder = nn.Embedding(20, 32), nn.GRU(32, 32, batch_first=True), nn.GRU(32, 32, batch_first=True)
mix, gain = nn.Linear(64, 20), nn.Parameter(torch.zeros(1))
parameters = [p for module in (embed, encoder, decoder, mix) for p in module.parameters()]
optimizer = torch.optim.Adam([*parameters, gain], lr=1e-2)
for _ in range(4):
    tokens = torch.randint(0, 20, (8, 12))
    memory, state = encoder(embed(tokens))
    hidden, _ = decoder(embed(tokens.flip(1)), state)
    weights = torch.softmax(hidden @ memory.transpose(1, 2), -1)
    found = weights @ memory
    scores = mix(torch.cat([hidden + gain * found, found], -1))
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
