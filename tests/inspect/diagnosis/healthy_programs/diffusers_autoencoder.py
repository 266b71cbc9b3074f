"""A training that is as it should be: diffusers' autoencoder with a sampled code and its divergence."""

import torch
from diffusers import AutoencoderKL

torch.manual_seed(25)
model = AutoencoderKL(
    block_out_channels=(8, 16),
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    layers_per_block=1,
    latent_channels=2,
    norm_num_groups=4,
    sample_size=16,
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    images = torch.rand(4, 3, 16, 16) * 2 - 1
    posterior = model.encode(images).latent_dist
    decoded = model.decode(posterior.sample()).sample
    loss = torch.nn.functional.l1_loss(decoded, images) + 1e-4 * posterior.kl().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
