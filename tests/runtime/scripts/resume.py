"""Trainings under several strategies, one after another, that go on from their last checkpoint up to a step.

resume.py FOLDER STEP NAME ...

Rank 0 writes each one's losses by step and what its moving average has come to, and those of an ordinary loop from the
first step.
"""

import json
import sys
from pathlib import Path
from typing import Any

import strategies as script
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from allranks import runtime

script.BATCH = 12  # of 2 ranks and of 3, each has the same share
DECAY = 0.9


def ordinary(last: int) -> tuple[list[float], dict[str, float]]:
    model, optimizer = script.model_and_optimizer()
    average = runtime.ExponentialMovingAverage(model, DECAY)
    losses = []
    for step in range(last):
        loss = script.loss_of(model, script.batch(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
        losses.append(float(loss.detach()))
    return losses, norms(average)


def norms(average: runtime.ExponentialMovingAverage) -> dict[str, float]:
    return {name: float(torch.linalg.vector_norm(weight)) for name, weight in average.weights().items()}


class Distributed:
    """A DTensor, which each of two ranks has; three have a part of its rows each."""

    def __init__(self, world_size: int) -> None:
        replicas = 2 if world_size == 2 else 1
        mesh = init_device_mesh("cpu", (replicas, world_size // replicas))
        self.whole = torch.arange(7 * 5000.0).reshape(7, 5000)
        self.tensor = distribute_tensor(self.whole, mesh, [Replicate(), Shard(0)])

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {"tensor": self.tensor}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        assert torch.equal(state["tensor"], self.whole)


def train(ranks: runtime.Ranks) -> None:
    folder, last, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    losses, average = ordinary(last)
    found = {"ordinary": {"losses": dict(enumerate(losses)), "average": average}}
    for name in names:
        found[name] = resumed(name, ranks, folder / name, last)
        torch.manual_seed(0)
    if ranks.is_main:
        sys.stdout.write(json.dumps(found) + "\n")


def resumed(name: str, ranks: runtime.Ranks, folder: Path, last: int) -> dict[str, Any]:
    training = script.prepare(name, ranks, runtime.TrainingSettings(blocks=(script.Block,)))
    parts: dict[str, Any] = {"training": training, "distributed": Distributed(ranks.world_size)}
    average = None if name == "zero3" else runtime.ExponentialMovingAverage(training, DECAY)
    if average:
        parts["average"] = average
    checkpoints = runtime.Checkpoints(folder, ranks, parts, every_steps=2)
    step = checkpoints.load()
    losses = {}
    while step < last:
        losses |= {step: script.losses(training, ranks, step, step + 1)[0]}
        if average:
            average.update()
        step += 1
        checkpoints.save_if_due(step)
    checkpoints.save(step)
    return {"losses": losses, "average": norms(average) if average else None}


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=60)
