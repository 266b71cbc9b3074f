"""A training that is as it should be: llama language model."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(4)
config = LlamaConfig(
    vocab_size=50,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
config._attn_implementation = "eager"
model = LlamaForCausalLM(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(5):
    tokens = torch.randint(0, 50, (4, 12))
    optimizer.zero_grad()
    model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
