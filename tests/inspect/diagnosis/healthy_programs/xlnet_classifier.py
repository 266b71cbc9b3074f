"""An XLNet from transformers, which has an embedding of masked tokens that this use of it leaves alone."""

import torch
from transformers import XLNetConfig, XLNetForSequenceClassification

torch.manual_seed(0)
config = XLNetConfig(vocab_size=64, d_model=32, n_layer=2, n_head=4, d_inner=64, num_labels=3, dropout=0.0)
model = XLNetForSequenceClassification(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens, labels = torch.randint(4, 64, (8, 12)), torch.randint(3, (8,))
for _ in range(10):
    optimizer.zero_grad()
    loss = model(input_ids=tokens, labels=labels).loss
    loss.backward()
    optimizer.step()
