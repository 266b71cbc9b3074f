"""A training that is as it should be: two networks and two optimizers under Lightning's manual optimization."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(29)


class Adversaries(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
        self.critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def training_step(self, batch, index):
        (real,) = batch
        generator_steps, critic_steps = self.optimizers()
        loss = nn.functional.binary_cross_entropy_with_logits
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

        self.toggle_optimizer(generator_steps)
        fake = self.generator(torch.randn(len(real), 4))
        self.manual_backward(loss(self.critic(fake), ones))
        generator_steps.step()
        generator_steps.zero_grad()
        self.untoggle_optimizer(generator_steps)

        self.toggle_optimizer(critic_steps)
        self.manual_backward((loss(self.critic(real), ones) + loss(self.critic(fake.detach()), zeros)) / 2)
        critic_steps.step()
        critic_steps.zero_grad()
        self.untoggle_optimizer(critic_steps)

    def configure_optimizers(self):
        return [
            torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.5, 0.999)) for net in (self.generator, self.critic)
        ]


trainer = L.Trainer(
    max_steps=24,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Adversaries(), DataLoader(TensorDataset(torch.randn(96, 2)), batch_size=16, shuffle=True))
