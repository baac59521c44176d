"""The training steps that the ranks of a step have recorded, attempt by attempt."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.contract import report
from allranks_lab.faults.in_rank import lines

REPORTS = "reports"
"""The folder for the files, in the folder of the step."""


@dataclass(frozen=True)
class TrainingStep:
    """One optimizer step of one rank. The states of weights and optimizer are digests, after the step.

    loss:    the sum of the tensors that `backward` was called on; None without a call
    rates:   the learning rate of each group of weights
    samples: indices in the data set, or digests of batches of one without indices
    random, random_after: by generator, a digest of its state before and after the optimizer step
    epoch:   the number of times that this process has begun to read its data
    """

    step: int
    time: float
    loss: float | None = None
    rates: tuple[float, ...] = ()
    samples: tuple[Any, ...] = ()
    random: Mapping[str, str] = field(default_factory=dict)
    random_after: Mapping[str, str] = field(default_factory=dict)
    weights: str = ""
    optimizer: str = ""
    epoch: int = 0


@dataclass
class RankSteps:
    """The record of one rank in one attempt.

    start:     the training step after which it starts
    known:     whether its first weights are those after a step of an earlier attempt
    weights, optimizer: digests of its first state; "" without moments
    world:     number of ranks
    random:    by generator, a digest of its state before the first batch of data is read
    """

    start: int
    known: bool = False
    weights: str = ""
    optimizer: str = ""
    world: str = "1"
    random: Mapping[str, str] = field(default_factory=dict)
    steps: list[TrainingStep] = field(default_factory=list)


@dataclass(frozen=True)
class Attempt:
    """An attempt in which at least one training step was completed, by rank."""

    number: int
    ranks: Mapping[int, RankSteps]

    @property
    def start(self) -> int:
        return min(rank.start for rank in self.ranks.values())

    @property
    def last(self) -> int:
        return max(rank.steps[-1].step if rank.steps else rank.start for rank in self.ranks.values())

    @property
    def times(self) -> tuple[float, float]:
        """The times at which its first and its last training step ended."""
        first = min(rank.steps[0].time for rank in self.ranks.values() if rank.steps)
        return first, max(rank.steps[-1].time for rank in self.ranks.values() if rank.steps)


def load(folder: str | os.PathLike[str], *, reported: bool = False) -> list[Attempt]:
    """Load the records of a step's ranks, in the order of the attempts.

    folder:   the folder of the step
    reported: whether to use rank 0's reports instead, as for a training without torch
    """
    found: dict[tuple[int, int], dict[int, RankSteps]] = {}
    reports = Path(folder, REPORTS)
    for path in () if reported else reports.glob("*_steps_*.jsonl"):
        number, rank = map(int, re.findall(r"\d+", path.name))
        starts = 0
        for line in lines(path):
            if line.pop("start", False):
                del line["time"]
                found.setdefault((number, starts), {})[rank] = RankSteps(line.pop("step"), **line)
                starts += 1
            elif starts:  # a launcher may start its workers again
                known = found[number, starts - 1][rank].steps
                known.append(TrainingStep(**{**line, "rates": tuple(line["rates"]), "samples": tuple(line["samples"])}))
    for path in reports.glob("*_rank_0.jsonl") if reported else ():
        events = [event for event in report.read(path)[0] if isinstance(event, report.Progress) and event.step]
        made = [TrainingStep(at, event.time, _loss(event)) for at, event in sorted({e.step: e for e in events}.items())]
        if made:
            found[int(path.name.partition("_")[0]), 0] = {0: RankSteps(made[0].step - 1, steps=made)}
    attempts = (Attempt(number, ranks) for (number, _), ranks in sorted(found.items()))
    return [attempt for attempt in attempts if any(rank.steps for rank in attempt.ranks.values())]


def _loss(event: report.Progress) -> float | None:
    return next((value for name, value in event.metrics.items() if "loss" in name and "val" not in name), None)
