"""A training that is as it should be: vit classifier."""

import torch
from transformers import ViTConfig, ViTForImageClassification

torch.manual_seed(3)
config = ViTConfig(
    image_size=16, patch_size=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
)
model = ViTForImageClassification(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(5):
    optimizer.zero_grad()
    model(pixel_values=torch.randn(4, 3, 16, 16), labels=torch.randint(0, 2, (4,))).loss.backward()
    optimizer.step()
