"""Trainings by DeepSpeed, each broken in one way: the argument is its name."""

import os
import sys

import deepspeed
import torch

rank = int(os.environ["RANK"])
CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
}


def start(config):
    deepspeed.init_distributed("gloo")
    model = torch.nn.Linear(8, 8)
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.001), config=config
    )
    return engine


def step(engine):
    engine.backward(engine(torch.ones(2, 8)).sum())
    engine.step()


def batch_size_of_one_rank():
    config = CONFIG | ({"train_batch_size": 12} if rank == 1 else {})
    engine = start(config)
    step(engine)


def checkpoint_of_rank_0():
    engine = start(CONFIG)
    step(engine)
    if rank == 0:
        engine.save_checkpoint("checkpoints")
    for _ in range(3):
        step(engine)


globals()[sys.argv[1]]()
