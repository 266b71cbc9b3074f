"""A training that is as it should be: two views of scaled and shuffled images, held together by a cosine."""

import torch
from torch import nn

torch.manual_seed(23)
images = torch.randint(0, 256, (64, 3, 8, 8)).float() / 255
kinds = torch.arange(64) % 4
order = torch.randperm(64)
images, kinds = images[order], kinds[order]
encoder = nn.Sequential(nn.Flatten(), nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 16))
head = nn.Linear(16, 4)
optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=1e-3)
for _ in range(2):
    order = torch.randperm(64)
    for rows in (order[:32], order[32:]):
        batch = (images[rows] - 0.5) / 0.25
        codes = [encoder(batch + 0.1 * torch.randn(32, 3, 8, 8)) for _ in range(2)]
        one, two = (nn.functional.normalize(code, dim=1) for code in codes)
        contrast = nn.functional.cross_entropy(one @ two.t() / 0.1, torch.arange(32))
        # Features that are normalised over the batch are to be independent of each other.
        along = [nn.functional.normalize(code - code.mean(0), dim=0) for code in codes]
        redundancy = (along[0].t() @ along[1] - torch.eye(16)).pow(2).mean()
        mixed = torch.randperm(32)
        shares = head(0.7 * codes[0] + 0.3 * codes[0][mixed])
        labels = 0.7 * nn.functional.cross_entropy(shares, kinds[rows])
        labels = labels + 0.3 * nn.functional.cross_entropy(shares, kinds[rows][mixed])
        optimizer.zero_grad()
        (contrast + redundancy + labels).backward()
        optimizer.step()
