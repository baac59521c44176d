"""Trainings by Horovod, each broken in one way: the argument is its name."""

import sys

import horovod.torch as hvd
import torch

hvd.init()
rank = hvd.rank()


def uneven_batches():
    for step in range(4 if rank == 3 else 5):
        hvd.allreduce(torch.ones(4), name=f"step.{step}")


def other_name():
    for step in range(5):
        hvd.allreduce(torch.ones(4), name=f"loss.{step}")
    if rank == 2:
        hvd.allreduce(torch.ones(4), name="accuracy")
    hvd.allreduce(torch.ones(4), name="metric")


def raised_from():
    for step in range(5):
        hvd.allreduce(torch.ones(4), name=f"step.{step}")
        if rank == 1 and step == 2:
            try:
                {}["shard 7"]
            except KeyError as error:
                raise RuntimeError("the index is damaged") from error


globals()[sys.argv[1]]()
