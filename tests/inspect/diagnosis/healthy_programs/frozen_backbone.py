"""A training that is as it should be: frozen backbone."""

import torch
from transformers import BertConfig, BertModel

torch.manual_seed(6)
config = BertConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
backbone = BertModel(config).eval()
for parameter in backbone.parameters():
    parameter.requires_grad_(False)
head = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
for _ in range(5):
    with torch.no_grad():
        features = backbone(input_ids=torch.randint(1, 60, (8, 12))).last_hidden_state[:, 0]
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(head(features), torch.randint(0, 3, (8,))).backward()
    optimizer.step()
