"""A training that is as it should be: resnet classifier."""

import torch
from transformers import ResNetConfig, ResNetForImageClassification

torch.manual_seed(5)
config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=3)
model = ResNetForImageClassification(config)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
for _epoch in range(3):
    model.train()
    for _ in range(3):
        optimizer.zero_grad()
        logits = model(pixel_values=torch.randn(8, 3, 32, 32)).logits
        torch.nn.functional.cross_entropy(logits, torch.randint(0, 3, (8,)), label_smoothing=0.1).backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        model(pixel_values=torch.randn(8, 3, 32, 32)).logits.argmax(1)
