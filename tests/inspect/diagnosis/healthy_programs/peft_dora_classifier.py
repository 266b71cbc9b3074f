"""A training that is as it should be: adapters of peft with magnitudes on a classifier whose head is trained whole."""

import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(31)
config = BertConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
adapters = LoraConfig(
    task_type=TaskType.SEQ_CLS,
    r=4,
    use_dora=True,
    use_rslora=True,
    target_modules=["query", "value"],
    modules_to_save=["classifier"],
)
model = get_peft_model(BertForSequenceClassification(config), adapters)
optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=2e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=8)
model.train()
for _ in range(8):
    tokens = torch.randint(1, 60, (8, 12))
    loss = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=torch.randint(0, 2, (8,))).loss
    loss.backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
