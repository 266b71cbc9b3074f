"""A training that is as it should be: torchvision's FCN with its auxiliary classifier and ignored pixels."""

import torch
from torchvision.models.segmentation import fcn_resnet50

torch.manual_seed(23)
model = fcn_resnet50(weights=None, weights_backbone=None, num_classes=3, aux_loss=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
for _ in range(2):
    model.train()
    for _ in range(2):
        labels = torch.randint(0, 3, (2, 32, 32))
        labels[:, 0] = 255
        out = model(torch.randn(2, 3, 32, 32))
        losses = [torch.nn.functional.cross_entropy(out[name], labels, ignore_index=255) for name in ("out", "aux")]
        optimizer.zero_grad()
        (losses[0] + 0.5 * losses[1]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(1, 3, 32, 32))["out"].argmax(1)
