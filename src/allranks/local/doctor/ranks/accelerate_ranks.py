"""A sum over all ranks by Accelerate's own reduction."""

import torch
from accelerate import Accelerator
from place import tell

accelerator = Accelerator()
total = accelerator.reduce(torch.tensor(float(accelerator.process_index + 1)), reduction="sum")
tell(
    rank=accelerator.process_index,
    world_size=accelerator.num_processes,
    local_rank=accelerator.local_process_index,
    total=total.item(),
)
accelerator.end_training()
