"""One step of Lightning's Trainer. Argument DEVICES: the number of ranks that it finds or starts on each instance."""

import os
import sys

from allranks import runtime

devices, per_node = int(sys.argv[1]), sys.argv[2:] == ["per-node"]
if os.environ.get("LOCAL_RANK") is None or not per_node or "ALLRANKS_PER_NODE" not in os.environ:
    runtime.prepare_libraries(per_node=per_node)

import lightning as pl  # noqa: E402
import torch  # noqa: E402
from place import tell  # noqa: E402


class Module(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch: torch.Tensor) -> torch.Tensor:
        total = self.all_gather(torch.tensor(float(self.global_rank + 1))).sum().item()
        tell(rank=self.global_rank, world_size=self.trainer.world_size, local_rank=self.local_rank, total=total)
        return self.layer(batch).sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = pl.Trainer(
    accelerator="cpu",
    strategy="ddp",
    devices=devices,
    num_nodes=int(os.environ["AZUREML_NODE_COUNT"]),
    max_steps=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(64, 1), batch_size=1))
