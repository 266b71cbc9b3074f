"""A training that is as it should be: Lightning's Trainer, with accumulation, clipping, validation and a schedule."""

import tempfile

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(28)


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 32),
            torch.nn.LayerNorm(32),
            torch.nn.GELU(),
            torch.nn.Dropout(0.1),
            torch.nn.Linear(32, 3),
        )

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("accuracy", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)}


def loader(shuffle):
    return DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,))), batch_size=8, shuffle=shuffle)


with tempfile.TemporaryDirectory() as root:
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        accumulate_grad_batches=2,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=root,
    )
    trainer.fit(Classifier(), loader(True), loader(False))
