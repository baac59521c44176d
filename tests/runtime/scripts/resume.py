"""Trainings under several strategies, one after another, that go on from their last checkpoint up to a step.

resume.py FOLDER STEP NAME ...

Rank 0 writes each one's losses by step, and those of an ordinary loop from the first step.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import strategies as script
import torch

from allranks import runtime

script.BATCH = 12  # for any number of ranks up to 4, each has the same share


def ordinary(last: int) -> list[float]:
    model, optimizer = script.model_and_optimizer()
    losses = []
    for step in range(last):
        loss = script.loss_of(model, script.batch(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def train(ranks: runtime.Ranks) -> None:
    folder, last, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    found = {"ordinary": dict(enumerate(ordinary(last)))}
    for name in names:
        training = script.prepare(name, ranks, runtime.TrainingSettings(blocks=(script.Block,)))
        checkpoints = runtime.Checkpoints(folder / name, ranks, {"training": training}, every_steps=2)
        step = checkpoints.load()
        found[name] = {}
        while step < last:
            found[name] |= {step: script.losses(training, ranks, step, step + 1)[0]}
            step += 1
            checkpoints.save_if_due(step)
        checkpoints.save(step)
        torch.manual_seed(0)
    if ranks.is_main:
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=60)
