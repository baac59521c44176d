"""A training by Accelerate in which one rank gathers once more than the others."""

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
for step in range(4):
    if accelerator.process_index == 2 and step == 2:
        accelerator.gather(torch.ones(3))
    accelerator.reduce(torch.ones(1))
accelerator.wait_for_everyone()
