"""A training that is as it should be: t5 sequence to sequence."""

import torch
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(2)
config = T5Config(vocab_size=40, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config).train()
optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-3)
for _ in range(5):
    source, target = torch.randint(1, 40, (4, 10)), torch.randint(1, 40, (4, 6))
    optimizer.zero_grad()
    model(input_ids=source, labels=target).loss.backward()
    optimizer.step()
