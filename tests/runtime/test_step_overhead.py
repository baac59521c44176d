"""What the runtime adds to a training step, in calls of Python functions, which do not vary as times do."""

from __future__ import annotations

import cProfile
import gc
import pstats
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from allranks import runtime
from allranks.runtime import strategies
from allranks.runtime.ranks.ranks import Ranks

STEPS = 50
MORE = 20
"""Calls per step: those of the sampler, of `backward` and `step`, and of `save_if_due`."""


def model_and_optimizer() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    return model, torch.optim.AdamW(model.parameters())


def ours(ranks: Ranks, strategy: str, folder: Path) -> Iterator[None]:
    training = strategies.strategy(strategy, ranks.device).prepare(*model_and_optimizer())
    sampler = runtime.ResumableSampler(4 * STEPS * 2, ranks, batch_size=4)
    checkpoints = runtime.Checkpoints(folder, ranks, {"training": training}, every_steps=10**6, every_minutes=10**6)
    for step, indices in enumerate(sampler.epoch_batches(), start=1):
        training.backward(training.model(torch.ones(len(indices), 8)).sum(), sampler.weight)
        training.step()
        checkpoints.save_if_due(step)
        yield


def by_hand(strategy: str) -> Iterator[None]:
    model, optimizer = model_and_optimizer()
    if strategy == "fsdp":
        fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
        optimizer = torch.optim.AdamW(model.parameters())
    else:
        model = DistributedDataParallel(model)
    while True:
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


def calls(loop: Iterator[None]) -> Counter[str]:
    """The calls in STEPS steps, by the function's name."""
    next(loop), next(loop), next(loop)
    profile = cProfile.Profile()
    gc.disable()  # a collection would call what other tests left behind: the finalizers of their objects
    try:
        profile.enable()
        for _ in range(STEPS):
            next(loop)
        profile.disable()
    finally:
        gc.enable()
    found: Counter[str] = Counter()
    for (_, _, name), (_, count, *_) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        found[name] += count
    return found


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_step_makes_hardly_more_calls_than_one_by_hand(alone: Ranks, tmp_path: Path, strategy: str) -> None:
    found, expected = calls(ours(alone, strategy, tmp_path)), calls(by_hand(strategy))
    more = (found.total() - expected.total()) / STEPS
    assert more < MORE, (found - expected).most_common(30)
    assert found["all_reduce"] == 0, "no collective of ours belongs to a step"


def test_metrics_are_not_read_where_they_are_logged(alone: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[float] = []

    class Mean:
        def snapshot(self) -> Mean:
            return self

        def __float__(self) -> float:
            read.append(1.0)
            return 1.0

    assert alone.metrics._writer is not None
    monkeypatch.setattr(alone.metrics._writer, "_work", alone.metrics._writer._closing.wait)
    alone.metrics.log({"loss": Mean()}, step=1)
    assert read == []
    alone.metrics.close("FINISHED")
