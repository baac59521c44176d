"""A training by Lightning's Trainer, as its documentation shows it; the argument breaks it."""

import sys

import lightning
import torch


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def training_step(self, batch, step):
        if sys.argv[1] == "bad_batch" and self.global_rank == 1 and step == 1:
            raise ValueError("bad batch")
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = lightning.Trainer(accelerator="cpu", devices=2, num_nodes=2, max_epochs=1, logger=False)
trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(32, 4), batch_size=2))
