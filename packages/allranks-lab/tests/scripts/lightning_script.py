"""Train with Lightning alone: a ModelCheckpoint within each epoch, and `ckpt_path` to continue."""

import sys
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.fabric.plugins.environments import LightningEnvironment
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return nn.functional.mse_loss(self.layers(batch[0]), batch[1])

    def configure_optimizers(self) -> dict[str, Any]:
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.7)}


folder = Path(sys.argv[1])
lightning.seed_everything(3)
x = torch.randn(256, 8)
trainer = lightning.Trainer(
    max_epochs=4,
    devices=1,
    num_nodes=2,
    accelerator="cpu",
    strategy="ddp",
    callbacks=[ModelCheckpoint(folder, every_n_train_steps=10, save_last=True)],
    plugins=[LightningEnvironment()],
    logger=False,
    enable_progress_bar=False,
)
last = folder / "last.ckpt"
trainer.fit(
    Model(),
    DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True),
    ckpt_path=last if last.exists() else None,
    weights_only=False,
)
