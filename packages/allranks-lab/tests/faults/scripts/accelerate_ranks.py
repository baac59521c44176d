"""A training by Accelerate."""

import os
from datetime import timedelta

import sabotage

rank = int(os.environ["RANK"])
sabotage.strike("start", rank)

import torch
from accelerate import Accelerator, InitProcessGroupKwargs

os.environ["MASTER_ADDR"] = sabotage.master() or os.environ["MASTER_ADDR"]
os.environ["WORLD_SIZE"] = str(sabotage.world_size(int(os.environ["WORLD_SIZE"]), rank))
time_out = timedelta(seconds=float(os.environ.get("TIME_OUT", "600")))
accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=time_out)])
model = torch.nn.Linear(4, 4)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
for step in range(sabotage.STEPS):
    sabotage.strike("before", rank, step)
    accelerator.backward(model(torch.ones(2, 4)).sum())
    optimizer.step()
    sabotage.strike("between", rank, step)
    total = torch.ones(1 + sabotage.strange("shape", rank, step))
    if sabotage.strange("type", rank, step):
        total = total.double()
    if sabotage.strange("order", rank, step):
        torch.distributed.broadcast(total, 0)
    accelerator.reduce(total)
sabotage.strike("after", rank)
accelerator.wait_for_everyone()
accelerator.end_training()
