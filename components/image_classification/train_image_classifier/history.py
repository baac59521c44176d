"""The figures that a training logged, as a file for comparing trainings."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, SupportsFloat


@dataclass(frozen=True)
class Point:
    """Figures at a step.

    loss:    the mean over the step's images, before the weights are updated
    seconds: per step, the mean since the previous point, without validation and checkpoints
    samples: images per step over all ranks, the mean since the previous point
    """

    step: int
    loss: float
    seconds: float
    samples: float
    peak_memory: float


class History:
    """The points of a training. Checkpoints include them, so that a resumed training's history is complete.

    The loss of a point is read when the next one is added, so that the training does not wait for its device.
    """

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._pending: tuple[int, SupportsFloat, float, float, float] | None = None
        self._since = time.perf_counter()
        self._paused = 0.0
        self._steps = 0
        self._samples = 0

    def count(self, samples: int) -> None:
        """Count the images of a step over all ranks."""
        self._steps += 1
        self._samples += samples

    def add(self, step: int, loss: SupportsFloat, peak_memory: float) -> Point:
        """Add a point for the steps since the last one, and return its figures; its loss is NaN until it is read."""
        self._read()  # waits until the device has reached the last point
        now = time.perf_counter()
        seconds = (now - self._since - self._paused) / self._steps
        samples = self._samples / self._steps
        self._pending = (step, loss, seconds, samples, peak_memory)
        self._since, self._paused, self._steps, self._samples = now, 0.0, 0, 0
        return Point(step, float("nan"), seconds, samples, peak_memory)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Context manager whose time belongs to no step."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._paused += time.perf_counter() - started

    def state_dict(self) -> dict[str, Any]:
        """Return the points."""
        self._read()
        return {"points": [asdict(point) for point in self._points]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the points."""
        self._points = [Point(**point) for point in state["points"]]

    def write(self, file: Path, about: Mapping[str, Any]) -> None:
        """Write the points, and other facts about the training, as JSON."""
        content = {**about, **self.state_dict()}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def _read(self) -> None:
        if self._pending is not None:
            step, loss, seconds, samples, peak_memory = self._pending
            self._points.append(Point(step, float(loss), seconds, samples, peak_memory))
            self._pending = None
