"""A training that is as it should be: a Unet of segmentation_models_pytorch with the Dice and focal losses."""

import segmentation_models_pytorch as smp
import torch

torch.manual_seed(37)
model = smp.Unet(
    "resnet18", encoder_weights=None, in_channels=1, classes=1, encoder_depth=3, decoder_channels=(16, 8, 8)
)
dice, focal = smp.losses.DiceLoss("binary"), smp.losses.FocalLoss("binary")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(2):
    model.train()
    for _ in range(3):
        masks = (torch.rand(4, 1, 32, 32) > 0.7).float()
        images = masks + 0.3 * torch.randn_like(masks)
        logits = model(images)
        loss = dice(logits, masks) + focal(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        smp.metrics.get_stats((model(images).sigmoid() > 0.5).long(), masks.long(), mode="binary")
