"""A training that is as it should be: bert classifier."""

import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
model = BertForSequenceClassification(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=4)
for _epoch in range(2):
    model.train()
    for _ in range(4):
        tokens = torch.randint(1, 60, (8, 12))
        mask = torch.ones_like(tokens)
        mask[:, 9:] = 0
        loss = model(input_ids=tokens, attention_mask=mask, labels=torch.randint(0, 2, (8,))).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        model(input_ids=tokens, attention_mask=mask).logits.argmax(-1)
