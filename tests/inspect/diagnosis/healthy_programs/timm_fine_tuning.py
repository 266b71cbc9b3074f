"""A training that is as it should be: a head of timm's MobileNet first, then all of it at a lower rate."""

import torch
from timm import create_model
from timm.loss import LabelSmoothingCrossEntropy
from timm.utils import freeze, unfreeze

torch.manual_seed(21)
model = create_model("mobilenetv3_small_050", num_classes=4, drop_rate=0.1)
criterion = LabelSmoothingCrossEntropy(0.1)
images, labels = torch.randn(16, 3, 64, 64), torch.randint(0, 4, (16,))
body = [name for name, _ in model.named_children() if name != "classifier"]


def train(parameters, rate):
    optimizer = torch.optim.AdamW(parameters, lr=rate)
    for _ in range(2):
        model.train()
        for batch in range(0, 16, 8):
            optimizer.zero_grad()
            criterion(model(images[batch : batch + 8]), labels[batch : batch + 8]).backward()
            optimizer.step()
        model.eval()
        with torch.inference_mode():
            model(images)


freeze(model, body)
train(model.classifier.parameters(), 3e-3)
unfreeze(model, body)
train(model.parameters(), 3e-4)
