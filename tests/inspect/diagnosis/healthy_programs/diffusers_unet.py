"""A training that is as it should be: the UNet of diffusers on noise, with its schedules and average of weights."""

import torch
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel, compute_snr

torch.manual_seed(24)
model = UNet2DModel(
    sample_size=16,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(8, 16),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
noise_schedule = DDPMScheduler(num_train_timesteps=100)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=8)
average = EMAModel(model.parameters(), decay=0.99)
images = torch.rand(32, 1, 16, 16) * 2 - 1
model.train()
for batch in images.split(4):
    noise, steps = torch.randn_like(batch), torch.randint(0, 100, (4,))
    predicted = model(noise_schedule.add_noise(batch, noise, steps), steps).sample
    snr = compute_snr(noise_schedule, steps)
    weights = torch.stack([snr, torch.full_like(snr, 5.0)], dim=1).min(dim=1)[0] / snr
    loss = torch.nn.functional.mse_loss(predicted, noise, reduction="none")
    loss = (loss.mean(dim=(1, 2, 3)) * weights).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    average.step(model.parameters())
model.eval()
noise_schedule.set_timesteps(2)
sample = torch.randn(1, 1, 16, 16)
with torch.no_grad():
    for step in noise_schedule.timesteps:
        sample = noise_schedule.step(model(sample, step).sample, step, sample).prev_sample
