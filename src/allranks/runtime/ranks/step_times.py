"""Measure how long training steps take, and write the times to a file that `compare_scaling` reads."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import distributed

from allranks.runtime.ranks.machines import measured_on
from allranks.runtime.ranks.ranks import Ranks

EVERY = 10
"""Steps per measured point."""

PENDING = 10
"""Number of points that are read later, because a GPU may not have reached their end."""

Batch = TypeVar("Batch")


@dataclass(frozen=True)
class _Point:
    """The steps of a point, and the marks at the start and the end of each part of it."""

    step: int
    steps: int
    samples: int
    segments: list[tuple[Any, Any]]


class StepTimes:
    """Measure the step times of a training. Every rank must make the same calls.

        times = runtime.StepTimes(ranks, sample="image")
        for epoch in range(epochs):
            for indices in times.track(sampler.epoch_batches()):
                ...                                             # one step
            ...                                                 # an evaluation here belongs to no step
        times.write(args.history)

    sample: the name of one sample, such as "image"

    After a resume, the file contains only the steps since the resume.
    """

    def __init__(self, ranks: Ranks, *, sample: str = "sample") -> None:
        self._ranks, self._sample = ranks, sample
        self._started = time.time()
        self._device = ranks.device
        self._points: list[dict[str, float]] = []
        self._pending: deque[_Point] = deque()
        self._step = 0
        self._clear()

    def track(self, batches: Iterable[Batch], samples: Callable[[Batch], int] | None = None) -> Iterator[Batch]:
        """Yield the batches of an epoch, one per step, and measure the steps.

        samples: returns the number of samples in a batch of this rank. By default, the length of a list of indices, or
                 of the first tensor in a DataLoader's batch.
        """
        count = samples or _samples
        segment_start = _mark(self._device)
        try:
            for batch in batches:
                try:
                    yield batch
                finally:  # also counts the last step of a loop that ends early
                    self._step += 1
                    self._steps += 1
                    self._samples += count(batch)
                if self._steps == EVERY:
                    now = _mark(self._device)
                    self._segments.append((segment_start, now))
                    segment_start = now
                    self._add()
        finally:
            self._segments.append((segment_start, _mark(self._device)))

    def write(self, file: Path, **about: Any) -> None:
        """Write the points and the hardware to a JSON file on rank 0. Every rank must call it.

        A point has the number of steps so far, and the means over the steps since the previous point: the seconds of a
        step, including the time to load its batch, and the samples of all ranks.

        about: further keys of the file
        """
        if self._steps:
            self._add()
        self._read(0)
        samples = torch.tensor([point["samples"] for point in self._points], dtype=torch.float64)
        distributed.all_reduce(samples)
        hardware = measured_on(self._ranks)
        if not self._ranks.is_main:
            return
        points = [point | {"samples": total} for point, total in zip(self._points, samples.tolist(), strict=True)]
        measurements = {"sample": self._sample, "started": self._started, "ended": time.time(), "points": points}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(about | hardware | measurements, indent=2) + "\n", encoding="utf-8")

    def _add(self) -> None:
        self._pending.append(_Point(self._step, self._steps, self._samples, self._segments))
        self._read(PENDING)
        self._clear()

    def _read(self, pending: int) -> None:
        """Read the times of all but the last points. pending: number of points to leave."""
        while len(self._pending) > pending:
            point = self._pending.popleft()
            seconds = sum(_seconds(*segment) for segment in point.segments)
            means = {"seconds": seconds / point.steps, "samples": point.samples / point.steps}
            self._points.append({"step": point.step, **means})

    def _clear(self) -> None:
        self._steps, self._samples = 0, 0
        self._segments: list[tuple[Any, Any]] = []


def _samples(batch: Any) -> int:
    if isinstance(batch, Mapping):
        batch = next(iter(batch.values()))
    elif isinstance(batch, (list, tuple)) and batch and isinstance(batch[0], torch.Tensor):
        batch = batch[0]
    return len(batch)


def _mark(device: torch.device) -> Any:
    """Mark this point of the training: a time, or an event in the order of a CUDA device's current stream, which may be
    some steps behind this process."""
    if device.type != "cuda":
        return time.perf_counter()
    event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event


def _seconds(start: Any, end: Any) -> float:
    """Return the seconds between two marks. Wait until a CUDA device has reached the second one."""
    if isinstance(end, float):
        return float(end - start)
    end.synchronize()
    return float(start.elapsed_time(end)) / 1000
