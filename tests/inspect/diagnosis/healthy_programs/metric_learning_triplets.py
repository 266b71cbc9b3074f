"""A training that is as it should be: mined triplets, and a margin of angles, of pytorch_metric_learning."""

import torch
from pytorch_metric_learning import losses, miners
from torch import nn

torch.manual_seed(38)
trunk = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
miner, triplets = (
    miners.TripletMarginMiner(margin=0.2, type_of_triplets="semihard"),
    losses.TripletMarginLoss(margin=0.2),
)
angles = losses.ArcFaceLoss(num_classes=4, embedding_size=16)
optimizer = torch.optim.Adam(trunk.parameters(), lr=1e-3)
centres = torch.optim.SGD(angles.parameters(), lr=1e-2)
means = torch.randn(4, 8)
for _ in range(10):
    labels = torch.randint(0, 4, (32,))
    embeddings = trunk(means[labels] + 0.5 * torch.randn(32, 8))
    loss = triplets(embeddings, labels, miner(embeddings, labels)) + angles(embeddings, labels)
    optimizer.zero_grad()
    centres.zero_grad()
    loss.backward()
    optimizer.step()
    centres.step()
