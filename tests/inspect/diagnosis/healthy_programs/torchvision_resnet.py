"""A training that is as it should be: torchvision's ResNet-18 with SGD, as in its reference scripts."""

import torch
from torchvision.models import resnet18
from torchvision.transforms import v2

torch.manual_seed(22)
model = resnet18(num_classes=4)
parameters = [
    {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 1e-4},
    {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0},
]
optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=8)
augment = v2.Compose(
    [v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]
)
images, labels = torch.randint(0, 256, (32, 3, 32, 32), dtype=torch.uint8), torch.randint(0, 4, (32,))
for _ in range(2):
    model.train()
    for batch in torch.randperm(32).split(8):
        loss = torch.nn.functional.cross_entropy(model(augment(images[batch])), labels[batch], label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.inference_mode():
        model(augment(images)).argmax(1)
