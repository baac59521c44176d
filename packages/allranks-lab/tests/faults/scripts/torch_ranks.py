"""A training by PyTorch: `ddp` or `fsdp2`."""

import os
import sys
from datetime import timedelta

import sabotage

sabotage.strike("start", int(os.environ["RANK"]))

import torch
from torch import distributed as dist

os.environ["MASTER_ADDR"] = sabotage.master() or os.environ["MASTER_ADDR"]
rank = int(os.environ["RANK"])
size = sabotage.world_size(int(os.environ["WORLD_SIZE"]), rank)
time_out = timedelta(seconds=float(os.environ.get("TIME_OUT", "600")))
dist.init_process_group("gloo", rank=rank, world_size=size, timeout=time_out)
model = torch.nn.Linear(4, 4)
if sys.argv[1] == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model)
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    fully_shard(model, mesh=init_device_mesh("cpu", (size,)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(sabotage.STEPS):
    sabotage.strike("before", rank, step)
    loss = model(torch.ones(2, 4)).sum()
    loss.backward()
    optimizer.step()
    sabotage.strike("between", rank, step)
    total = torch.ones(1 + sabotage.strange("shape", rank, step))
    if sabotage.strange("type", rank, step):
        total = total.double()
    if sabotage.strange("order", rank, step):
        dist.broadcast(total, 0)
    dist.all_reduce(total)
sabotage.strike("after", rank)
dist.barrier()
dist.destroy_process_group()
