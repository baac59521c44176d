"""A training by Lightning's Trainer."""

import os
from datetime import timedelta

import sabotage

rank = int(os.environ["RANK"])
sabotage.strike("start", rank)

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy

os.environ["MASTER_ADDR"] = sabotage.master() or os.environ["MASTER_ADDR"]


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def training_step(self, batch, step):
        sabotage.strike("before", rank, step)
        return self.layer(batch).sum()

    def on_train_batch_end(self, outputs, batch, step):
        sabotage.strike("between", rank, step)
        total = torch.ones(1 + sabotage.strange("shape", rank, step))
        if sabotage.strange("type", rank, step):
            total = total.double()
        if sabotage.strange("order", rank, step):
            torch.distributed.broadcast(total, 0)
        torch.distributed.all_reduce(total)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = lightning.Trainer(
    accelerator="cpu",
    strategy=DDPStrategy(timeout=timedelta(seconds=float(os.environ.get("TIME_OUT", "600")))),
    devices=2,
    num_nodes=sabotage.world_size(2, rank),
    max_steps=sabotage.STEPS,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(8 * sabotage.STEPS, 4), batch_size=2))
sabotage.strike("after", rank)
trainer.strategy.barrier()
