"""A training that is as it should be: gpt2 language model."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(1)
model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=4)).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
for step in range(8):
    tokens = torch.randint(0, 50, (4, 16))
    loss = model(input_ids=tokens, labels=tokens).loss / 2
    loss.backward()
    if step % 2:
        optimizer.step()
        optimizer.zero_grad()
