"""A training that is as it should be: timm's ConvNeXt with its own optimizer, schedule, mixup and average."""

import torch
from timm import create_model
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3

torch.manual_seed(20)
model = create_model("convnext_atto", num_classes=5, drop_path_rate=0.1, depths=(1, 1, 2, 1), dims=(8, 16, 24, 32))
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
schedule = CosineLRScheduler(optimizer, t_initial=4, warmup_t=1, warmup_lr_init=1e-4)
average = ModelEmaV3(model, decay=0.99)
mixup = Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=5)
criterion = SoftTargetCrossEntropy()
for epoch in range(3):
    model.train()
    for _ in range(3):
        images, targets = mixup(torch.randn(8, 3, 64, 64), torch.randint(0, 5, (8,)))
        loss = criterion(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.update(model)
    schedule.step(epoch + 1)
    average.module.eval()
    with torch.no_grad():
        average.module(torch.randn(8, 3, 64, 64)).argmax(1)
