"""A training by DeepSpeed: the argument is ZeRO's stage."""

import os
import sys
from datetime import timedelta

import sabotage

rank = int(os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
sabotage.strike("start", rank)

import deepspeed
import torch
from torch import distributed as dist

if sabotage.master():
    os.environ["MASTER_ADDR"] = os.environ["AZ_BATCH_MASTER_NODE"] = sabotage.master()
for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"):
    if name in os.environ:
        os.environ[name] = str(sabotage.world_size(int(os.environ[name]), rank))
deepspeed.init_distributed("gloo", timeout=timedelta(seconds=float(os.environ.get("TIME_OUT", "600"))))
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))
config = {
    "train_micro_batch_size_per_gpu": 2,
    # Every weight of stage 3 is split and gathered in the background: small ones would stay whole.
    "zero_optimization": {"stage": int(sys.argv[1]), "stage3_param_persistence_threshold": 0},
    "zero_allow_untested_optimizer": True,
}
engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.001), config=config)
for step in range(sabotage.STEPS):
    sabotage.strike("before", rank, step)
    engine.backward(engine(torch.ones(2, 64)).sum())
    sabotage.strike("between", rank, step)
    engine.step()
    total = torch.ones(1 + sabotage.strange("shape", rank, step))
    if sabotage.strange("type", rank, step):
        total = total.double()
    if sabotage.strange("order", rank, step):
        dist.broadcast(total, 0)
    dist.all_reduce(total)
sabotage.strike("after", rank)
dist.barrier()
dist.destroy_process_group()
