"""A training by Horovod."""

import os

import sabotage

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
sabotage.strike("start", rank)

import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(4, 4)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters()
)
for step in range(sabotage.STEPS):
    sabotage.strike("before", rank, step)
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    sabotage.strike("between", rank, step)
    total = torch.ones(1 + sabotage.strange("shape", rank, step))
    if sabotage.strange("type", rank, step):
        total = total.double()
    if sabotage.strange("order", rank, step):
        hvd.broadcast(total, 0, name="order")
    hvd.allreduce(total, name="total")
sabotage.strike("after", rank)
hvd.allreduce(torch.ones(1), name="end")
hvd.shutdown()
