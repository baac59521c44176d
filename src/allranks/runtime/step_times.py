"""How long a training's steps take, as a file that `compare_scaling` reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import distributed

from allranks.runtime.machines import measured_on
from allranks.runtime.ranks import Ranks

EVERY = 10
"""Steps of a point: on a GPU its end is waited for, and that is not free."""

Batch = TypeVar("Batch")


@dataclass(frozen=True)
class Pace:
    """A point: the mean over the steps since the point before.

    step:    steps made so far
    seconds: of a step, with the time until its batch was there
    samples: of a step, those of all ranks together once it is written
    """

    step: int
    seconds: float
    samples: float


class StepTimes:
    """The pace of a training. Every rank makes the same calls.

        times = runtime.StepTimes(ranks, sample="image")
        for epoch in range(epochs):
            for indices in times.track(sampler.track(sampler)):
                ...                                             # one step
            ...                                                 # an evaluation here is no part of any step
        times.write(args.history)

    sample: what is counted, in the singular

    A training that goes on from a checkpoint has the times of what it made itself.
    """

    def __init__(self, ranks: Ranks, *, sample: str = "sample") -> None:
        self._ranks, self._sample = ranks, sample
        self._started = time.time()
        self._points: list[Pace] = []
        self._step = 0
        self._clear()

    def track(self, batches: Iterable[Batch], samples: Callable[[Batch], int] | None = None) -> Iterator[Batch]:
        """Go through the batches of an epoch, one a step.

        samples: how many of this rank are in a batch; by default those of a list of indices, or of the first tensor of
                 what a DataLoader gives
        """
        count = samples or _samples
        since = self._now()
        try:
            for batch in batches:
                try:
                    yield batch
                finally:  # also where the loop is left early: its last step was one
                    self._step += 1
                    self._steps += 1
                    self._samples += count(batch)
                if self._steps == EVERY:
                    now = self._now()
                    self._seconds += now - since
                    since = now
                    self._add()
        finally:
            self._seconds += self._now() - since

    def write(self, file: Path, **about: Any) -> None:
        """Write the points, where they were measured and what else is to be known, as JSON on rank 0. A collective."""
        if self._steps:
            self._add()
        samples = torch.tensor([point.samples for point in self._points], dtype=torch.float64)
        distributed.all_reduce(samples)
        place = measured_on(self._ranks)
        if not self._ranks.is_main:
            return
        points = [
            asdict(point) | {"samples": of_all} for point, of_all in zip(self._points, samples.tolist(), strict=True)
        ]
        found = {"sample": self._sample, "started": self._started, "ended": time.time(), "points": points}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(about | place | found, indent=2) + "\n", encoding="utf-8")

    def _add(self) -> None:
        self._points.append(Pace(self._step, self._seconds / self._steps, self._samples / self._steps))
        self._clear()

    def _clear(self) -> None:
        self._steps, self._samples, self._seconds = 0, 0, 0.0

    def _now(self) -> float:
        if self._ranks.device.type == "cuda":
            torch.cuda.synchronize(self._ranks.device)
        return time.perf_counter()


def _samples(batch: Any) -> int:
    if isinstance(batch, Mapping):
        batch = next(iter(batch.values()))
    elif isinstance(batch, (list, tuple)) and batch and isinstance(batch[0], torch.Tensor):
        batch = batch[0]
    return len(batch)
